"""Rows are only added: insert them through the state partition, so that stored rows are not matched.

Rows of a keyed view are computed before and kept (signed.py); the statement looks up whether a key is taken (taken.py)
and aborts before anything is written.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.delta.weights import as_bag
from dbt_ivm.operators import Operator
from dbt_ivm.refresh.apply.context import Applied, ApplyContext
from dbt_ivm.refresh.apply.taken import error_if_taken, taken_identity
from dbt_ivm.render.merge import equal, merge_into, number, source, target, when_not_matched


def append_kept_rows(ctx: ApplyContext, plan: Operator, kept_as: str) -> Applied:
    """Rows of a keyed view, as kept."""
    columns = ctx.layout.stored
    rows = exp.Select(expressions=[nodes.column(c) for c in columns])
    rows = rows.from_(exp.Table(this=exp.to_identifier(kept_as)), copy=False)
    example = exp.Subquery(this=taken_identity(ctx, kept_as))
    seq = exp.Add(this=nodes.cast(number(ctx.seq), "bigint"), expression=error_if_taken(ctx, example))
    return _append(ctx, rows, columns, plan, seq)


def append_bag(ctx: ApplyContext) -> Applied:
    """Rows without a key."""
    rows = as_bag(ctx.required_change)
    columns = ctx.layout.stored
    return _append(ctx, numbered(ctx.query(rows), columns), (*columns, names.ROW), rows)


def numbered(data: exp.Query, columns: tuple[str, ...]) -> exp.Query:
    """Each row with a number that is unique within the statement."""
    rows = exp.select(*(nodes.column(c) for c in columns))
    number_of = exp.Anonymous(this="MONOTONICALLY_INCREASING_ID")
    return rows.select(exp.alias_(number_of, names.ROW, quoted=True)).from_(nodes.aliased(data, "n"))


def _append(
    ctx: ApplyContext, data: exp.Query, columns: tuple[str, ...], plan: Operator, seq: exp.Expr | None = None
) -> Applied:
    using = ctx.with_state_row(data, columns, seq)
    on = [equal(target(names.PART), names.STATE_PART), equal(source(names.PART), names.STATE_PART)]
    whens = [
        ctx.compare_and_set(),
        ctx.state_must_exist(),
        when_not_matched(None, ctx.inserted({c: source(c) for c in columns})),
    ]
    return Applied("append", merge_into(ctx.storage, using, on, whens), plan)

"""Rows are only added: insert them through the state partition, so that stored rows are not matched.

Of a keyed view (signed.py) the statement looks up whether a key may be taken (taken.py) and aborts before anything is
written.  The rows of a large view are computed before and kept.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.delta.weights import as_bag
from dbt_ivm.operators import Operator
from dbt_ivm.refresh.apply.context import Applied, ApplyContext
from dbt_ivm.refresh.apply.taken import error_if_taken, taken_identity
from dbt_ivm.render.merge import equal, merge_into, number, source, target, when_not_matched


def append_keyed(
    ctx: ApplyContext, plan: Operator, name: str, may_be_taken: bool, computed: exp.Select | None = None
) -> Applied:
    """Rows of a keyed view under a name: kept, or computed by this statement.

    Args:
        may_be_taken: whether a new key may be among the stored ones; then the statement looks it up.
    """
    columns = ctx.layout.stored
    rows = exp.Select(expressions=[nodes.column(c) for c in columns])
    rows = rows.from_(exp.Table(this=exp.to_identifier(name)), copy=False)
    # the part of a row whose key comes twice is an error: asked for, or no engine would compute it
    rows = rows.where(equal(nodes.column(names.PART), names.DATA_PART), copy=False)
    seq: exp.Expr = nodes.cast(number(ctx.seq), "bigint")
    if may_be_taken:
        example = exp.Subquery(this=taken_identity(ctx, name))
        seq = exp.Add(this=seq, expression=error_if_taken(ctx, example))
    using = ctx.with_state_row(rows, columns, seq)
    return _append(ctx, using if computed is None else using.with_(name, as_=computed, copy=False), columns, plan)


def append_bag(ctx: ApplyContext) -> Applied:
    """Rows without a key."""
    rows = as_bag(ctx.required_change)
    columns = ctx.layout.stored
    numbers = numbered(ctx.query(rows), columns)
    columns = (*columns, names.ROW)
    return _append(ctx, ctx.with_state_row(numbers, columns), columns, rows)


def numbered(data: exp.Query, columns: tuple[str, ...]) -> exp.Query:
    """Each row with a number that is unique within the statement."""
    rows = exp.select(*(nodes.column(c) for c in columns))
    number_of = exp.Anonymous(this="MONOTONICALLY_INCREASING_ID")
    return rows.select(exp.alias_(number_of, names.ROW, quoted=True)).from_(nodes.aliased(data, "n"))


def _append(ctx: ApplyContext, using: exp.Query, columns: tuple[str, ...], plan: Operator) -> Applied:
    on = [equal(target(names.PART), names.STATE_PART), equal(source(names.PART), names.STATE_PART)]
    whens = [
        ctx.compare_and_set(),
        ctx.state_must_exist(),
        when_not_matched(None, ctx.inserted({c: source(c) for c in columns})),
    ]
    return Applied("append", merge_into(ctx.storage, using, on, whens), plan)

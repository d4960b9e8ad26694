"""By log: stored rows are not touched.  New rows and tombstones are appended together with a new state row.

    way                     rows come from
    append                  the net change, when it can only add
    log by key              the net change: '+' a row, '−' a tombstone with the old row
    log by group            counts and sums of the change, added to the stored group
    log recomputed groups   the affected groups anew, next to the stored ones

The rows are computed first and kept (``logged_rows``), counted (``look_at_rows``), then appended (``append_kept``): the
commit knows its own counts, and of the storage table it reads the state row and where new keys might be taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.delta.weights import net
from dbt_ivm.operators import Operator
from dbt_ivm.refresh.apply.context import STALE, Applied, ApplyContext
from dbt_ivm.refresh.apply.replacements import recomputed_rows, regrouped_rows
from dbt_ivm.refresh.apply.signed import DELETED, INSERTED, UPDATED, signed_rows
from dbt_ivm.refresh.apply.taken import (
    EXAMPLE,
    asks_for_range,
    error_if_taken,
    ranges_of_new,
    taken_identity,
    with_stored_range,
)
from dbt_ivm.refresh.state import METADATA_MARK, RowCounts, State
from dbt_ivm.render.merge import case, equal, fail, is_of_build, number
from dbt_ivm.render.query import in_one_task, sql_text
from dbt_ivm.storage.delta_format import commit_options, insert_rows
from dbt_ivm.storage.layout import Shape

#: Up to so many rows are written by one task, into one file.
ONE_TASK_ROWS = 200_000


@dataclass(frozen=True)
class LoggedRows:
    """Rows to append with their part and kind, and the plan they come from."""

    way: str
    plan: Operator
    rows: Callable[[], exp.Select]


def logged_rows(ctx: ApplyContext) -> LoggedRows:
    if ctx.layout.shape is Shape.GROUPS:
        return LoggedRows("log by group", *regrouped_rows(ctx))
    if ctx.layout.shape is Shape.RECOMPUTED:
        return LoggedRows("log recomputed groups", *recomputed_rows(ctx))
    change = net(ctx.required_change)
    return LoggedRows("append" if ctx.only_adds else "log by key", change, partial(signed_rows, ctx, change))


def look_at_rows(ctx: ApplyContext, kept_as: str) -> str:
    """One row: how many rows are of which kind, where new keys are, and where stored ones while that is not known."""
    facts: dict[str, exp.Expr] = {}
    for kind in (INSERTED, UPDATED, DELETED):
        is_kind = equal(nodes.column(names.STATE), exp.Literal.string(kind))
        if kind == UPDATED:  # told by the tombstone; the new row is of this kind too
            is_kind = exp.and_(is_kind, equal(nodes.column(names.PART), names.TOMBSTONE_PART))
        facts[kind] = exp.Sum(this=case(is_kind, number(1), number(0)))
    if ctx.layout.shape is Shape.KEYED:
        facts |= ranges_of_new(ctx)
    select = exp.Select(expressions=[exp.Alias(this=v, alias=nodes.name(n)) for n, v in facts.items()])
    select = select.from_(exp.Table(this=exp.to_identifier(kept_as)), copy=False)
    return sql_text(with_stored_range(ctx, select) if asks_for_range(ctx) else select)


def read_counts(row: Mapping[str, Any]) -> RowCounts:
    """What that row says; sums over no rows are NULL.

    >>> read_counts({"inserted": 2, "updated": 3, "deleted": None})
    RowCounts(inserted=2, updated=3, deleted=0)
    """
    return RowCounts(*(int(row[kind] or 0) for kind in (INSERTED, UPDATED, DELETED)))


def append_kept(
    ctx: ApplyContext, found: LoggedRows, kept_as: str, counts: RowCounts, may_be_taken: bool = True
) -> Applied:
    """
    Args:
        may_be_taken: whether some stored row, dead or live, has the key of a new one.
    """
    dead = (counts.updated or 0) + (counts.deleted or 0)
    state = replace(ctx.state, counts=counts, adds_only=dead == 0, tombstones=ctx.state.tombstones + dead)
    is_dead = equal(nodes.column(names.PART), names.TOMBSTONE_PART)
    kind = case(is_dead, nodes.column(names.STATE), nodes.null("string"))
    rows = exp.Select(expressions=[nodes.column(c) for c in (*ctx.layout.stored, names.PART)])
    rows.append("expressions", exp.Alias(this=kind, alias=nodes.name(names.STATE)))
    following = nodes.cast(number(ctx.seq + 1), "bigint")
    rows.append("expressions", exp.Alias(this=following, alias=nodes.name(names.SEQ)))
    rows = rows.from_(exp.Table(this=exp.to_identifier(kept_as)), copy=False)
    if counts.inserted is not None and counts.inserted + (counts.updated or 0) + dead <= ONE_TASK_ROWS:
        rows = in_one_task(rows)
    checks = may_be_taken and ctx.layout.shape is Shape.KEYED and counts.inserted != 0
    taken = taken_identity(ctx, kept_as) if checks else None
    every = exp.union(rows, _state_row(ctx, state, taken), distinct=False, copy=False)
    return Applied(found.way, _insert(ctx, every, state), found.plan, state)


def only_state(ctx: ApplyContext) -> Applied:
    state = replace(ctx.state, adds_only=True, counts=RowCounts())
    return Applied("state only", _insert(ctx, _state_row(ctx, state, None), state), None, state)


def _insert(ctx: ApplyContext, rows: exp.Query, state: State) -> str:
    options = commit_options(state.epoch, ctx.seq + 1, METADATA_MARK + state.to_json())
    return insert_rows(ctx.storage, sql_text(rows), options)


def _state_row(ctx: ApplyContext, state: State, taken: exp.Select | None) -> exp.Select:
    """The state row, from what must hold: each check is a query of one row, so that it is evaluated once.

    Delta tells apart commits by log; a table that was rebuilt meanwhile shows in its state row.
    """
    found = nodes.column("found", "last")
    latest = {
        "found": exp.Max(this=nodes.column(names.SEQ)),
        "known": exp.ArgMax(this=nodes.column(names.STATE), expression=nodes.column(names.SEQ)),
    }
    seen = exp.Select(expressions=[exp.Alias(this=value, alias=nodes.name(name)) for name, value in latest.items()])
    seen = seen.from_(ctx.storage.table(), copy=False)
    seen = seen.where(equal(nodes.column(names.PART), names.STATE_PART), copy=False)
    is_known = is_of_build(nodes.column("known", "last"), ctx.state.epoch)
    is_stale = exp.Not(this=exp.Paren(this=exp.and_(exp.NullSafeEQ(this=found, expression=number(ctx.seq)), is_known)))
    stale = nodes.cast(fail(f"{STALE}{ctx.seq}, ", found.copy()), "bigint")
    row = exp.Select(expressions=[exp.Alias(this=exp.Null(), alias=nodes.name(c)) for c in ctx.layout.stored])
    row.append("expressions", exp.Alias(this=number(names.STATE_PART), alias=nodes.name(names.PART)))
    text = exp.Literal.string(state.to_json())
    row.append("expressions", exp.Alias(this=text, alias=nodes.name(names.STATE)))
    row = row.from_(nodes.aliased(seen, "last"), copy=False)
    seq: exp.Expr = nodes.cast(number(ctx.seq + 1), "bigint")
    if taken is not None:
        row.append("joins", exp.Join(this=nodes.aliased(taken, "taken"), kind="CROSS"))
        seq = exp.Add(this=seq, expression=error_if_taken(ctx, nodes.column(EXAMPLE, "taken")))
    seq = exp.Case(ifs=[exp.If(this=is_stale, true=stale)], default=seq)
    row.append("expressions", exp.Alias(this=seq, alias=nodes.name(names.SEQ)))
    return row

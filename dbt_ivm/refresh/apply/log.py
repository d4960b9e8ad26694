"""By log: stored rows are not touched.  New rows and tombstones are appended together with a new state row.

One INSERT, evaluated once; its cost follows the change.  The statement itself counts what it adds, by a window over
all its rows, and writes the numbers into the state row.

    way                     rows come from
    append                  the net change, when it can only add
    log by key              the net change: '+' a row, '−' a tombstone with the old row
    log by group            counts and sums of the change, added to the stored group
    log recomputed groups   the affected groups anew, next to the stored ones
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.delta.weights import net
from dbt_ivm.operators import Operator, Project
from dbt_ivm.refresh.apply.append import EXAMPLE, double_keys, duplicate
from dbt_ivm.refresh.apply.context import DUPLICATE, STALE, Applied, ApplyContext
from dbt_ivm.refresh.apply.replacements import DELETED, UPDATED, recomputed_rows, regrouped_rows
from dbt_ivm.refresh.state import METADATA_MARK
from dbt_ivm.render.merge import case, equal, fail, number
from dbt_ivm.render.query import sql_text
from dbt_ivm.storage.delta_format import commit_options, insert_rows
from dbt_ivm.storage.layout import Shape


def log(ctx: ApplyContext) -> Applied:
    if ctx.change is None:
        return _insert(ctx, "state only", None, None, adds_only=True)
    if ctx.layout.shape is Shape.GROUPS:
        rows, plan = regrouped_rows(ctx)
        return _insert(ctx, "log by group", rows, plan)
    if ctx.layout.shape is Shape.RECOMPUTED:
        rows, plan = recomputed_rows(ctx)
        return _insert(ctx, "log recomputed groups", rows, plan)
    if ctx.only_adds:
        added = Project.keeping(net(ctx.required_change), ctx.layout.stored)
        return _insert(ctx, "append", _as_data(ctx, added), added, adds_only=True)
    change = net(ctx.required_change)
    return _insert(ctx, "log by key", _signed_rows(ctx, change), change)


def _as_data(ctx: ApplyContext, plan: Operator) -> exp.Select:
    rows = exp.Select(expressions=[nodes.column(c) for c in ctx.layout.stored])
    rows.append("expressions", exp.Alias(this=number(names.DATA_PART), alias=nodes.name(names.PART)))
    rows.append("expressions", exp.Alias(this=nodes.null("string"), alias=nodes.name(names.STATE)))
    return rows.from_(nodes.aliased(ctx.query(plan), "d"), copy=False)


def _signed_rows(ctx: ApplyContext, change: Operator) -> exp.Select:
    """A key has at most one row before and one after; anything else proves the declared key wrong."""
    keys = [nodes.column(k, "d") for k in ctx.layout.identity]
    weight = nodes.column(names.WEIGHT, "d")
    positive = exp.GT(this=weight, expression=number(0))
    counts = {
        names.ADDED: case(positive, weight.copy(), number(0)),
        names.REMOVED: case(positive.copy(), number(0), exp.Neg(this=weight.copy())),
    }
    counted = exp.Select(expressions=[nodes.column(c, "d") for c in (*ctx.layout.stored, names.WEIGHT)])
    for name, value in counts.items():
        window = exp.Window(this=exp.Sum(this=value), partition_by=[k.copy() for k in keys])
        counted.append("expressions", exp.Alias(this=window, alias=nodes.name(name)))
    counted = counted.from_(nodes.aliased(ctx.query(change), "d"), copy=False)

    own = [nodes.column(k, "c") for k in ctx.layout.identity]
    added, removed = nodes.column(names.ADDED, "c"), nodes.column(names.REMOVED, "c")
    relied_on = ", ".join(f"{name} {key}" for name, key in ctx.layout.relied_on)
    double = nodes.cast(fail(f"{DUPLICATE}{relied_on}: ", *own), "int")
    twice = exp.or_(exp.GT(this=added, expression=number(1)), exp.GT(this=removed, expression=number(1)))
    is_new = exp.GT(this=nodes.column(names.WEIGHT, "c"), expression=number(0))
    part = exp.Case(
        ifs=[exp.If(this=twice, true=double), exp.If(this=is_new, true=number(names.DATA_PART))],
        default=number(names.TOMBSTONE_PART),
    )
    became = case(equal(added.copy(), 1), exp.Literal.string(UPDATED), exp.Literal.string(DELETED))
    kind = case(is_new.copy(), nodes.null("string"), became)
    rows = exp.Select(expressions=[nodes.column(c, "c") for c in ctx.layout.stored])
    rows.append("expressions", exp.Alias(this=part, alias=nodes.name(names.PART)))
    rows.append("expressions", exp.Alias(this=kind, alias=nodes.name(names.STATE)))
    return rows.from_(nodes.aliased(counted, "c"), copy=False)


def _insert(
    ctx: ApplyContext, way: str, rows: exp.Select | None, plan: Operator | None, adds_only: bool = False
) -> Applied:
    """The rows (with their part and kind), the state row behind them, all in one commit."""
    state = replace(ctx.state, adds_only=adds_only)
    columns = (*ctx.layout.stored, names.PART, names.STATE, names.SEQ)
    every: exp.Query = _state_row(ctx, checks_keys=way in ("append", "log by key"))
    if rows is not None:
        following = nodes.cast(number(ctx.seq + 1), "bigint")
        rows.append("expressions", exp.Alias(this=following, alias=nodes.name(names.SEQ)))
        every = exp.union(rows, every, distinct=False, copy=False)

    counted = exp.Select(expressions=[nodes.column(c, "e") for c in columns])
    is_data = equal(nodes.column(names.PART, "e"), names.DATA_PART)
    kind = nodes.column(names.STATE, "e")
    numbers = {
        "rows": is_data,
        UPDATED: equal(kind, exp.Literal.string(UPDATED)),
        DELETED: equal(kind.copy(), exp.Literal.string(DELETED)),
    }
    for name, condition in numbers.items():
        total = exp.Window(this=exp.Sum(this=case(condition, number(1), number(0))))
        counted.append("expressions", exp.Alias(this=total, alias=nodes.name(f"{names.PREFIX}{name}")))
    counted = counted.from_(nodes.aliased(every, "e"), copy=False)

    is_state = equal(nodes.column(names.PART, "n"), names.STATE_PART)
    text = case(is_state, _state_text(state.to_json()), nodes.column(names.STATE, "n"))
    result = exp.Select(expressions=[nodes.column(c, "n") for c in ctx.layout.stored])
    result.append("expressions", exp.Alias(this=nodes.column(names.PART, "n"), alias=nodes.name(names.PART)))
    result.append("expressions", exp.Alias(this=text, alias=nodes.name(names.STATE)))
    result.append("expressions", nodes.column(names.SEQ, "n"))
    result = result.from_(nodes.aliased(counted, "n"), copy=False)
    options = commit_options(state.epoch, ctx.seq + 1, METADATA_MARK + state.to_json())
    return Applied(way, insert_rows(ctx.storage, sql_text(result), options), plan)


def _state_row(ctx: ApplyContext, checks_keys: bool) -> exp.Select:
    """The state row, from what must hold: each check is a query of one row, so that it is evaluated once.

    Delta tells apart commits by log; a table that was rebuilt meanwhile shows in its state row.
    """
    found = nodes.column("found", "last")
    seen = exp.Select(expressions=[exp.Alias(this=exp.Max(this=nodes.column(names.SEQ)), alias=nodes.name("found"))])
    seen = seen.from_(ctx.storage.table(), copy=False)
    seen = seen.where(equal(nodes.column(names.PART), names.STATE_PART), copy=False)
    is_stale = exp.Not(this=exp.Paren(this=exp.NullSafeEQ(this=found, expression=number(ctx.seq))))
    stale = nodes.cast(fail(f"{STALE}{ctx.seq}, ", found.copy()), "bigint")
    checks = [exp.If(this=is_stale, true=stale)]
    row = exp.Select(expressions=[exp.Alias(this=exp.Null(), alias=nodes.name(c)) for c in ctx.layout.stored])
    row.append("expressions", exp.Alias(this=number(names.STATE_PART), alias=nodes.name(names.PART)))
    row.append("expressions", exp.Alias(this=nodes.null("string"), alias=nodes.name(names.STATE)))
    row = row.from_(nodes.aliased(seen, "last"), copy=False)
    for position, (key, query) in enumerate(double_keys(ctx) if checks_keys else [], 1):
        alias = f"key{position}"
        example = nodes.column(EXAMPLE, alias)
        is_double = exp.Not(this=exp.Is(this=example, expression=exp.Null()))
        checks.append(exp.If(this=is_double, true=nodes.cast(duplicate(key, example.copy()), "bigint")))
        row.append("joins", exp.Join(this=nodes.aliased(query, alias), kind="CROSS"))
    seq = exp.Case(ifs=checks, default=nodes.cast(number(ctx.seq + 1), "bigint"))
    row.append("expressions", exp.Alias(this=seq, alias=nodes.name(names.SEQ)))
    return row


def _state_text(json: str) -> exp.Expr:
    """The state with the counts of this very statement."""

    def value(name: str) -> exp.Expr:
        return nodes.cast(nodes.column(f"{names.PREFIX}{name}", "n"), "string")

    inserted = exp.Sub(
        this=nodes.column(f"{names.PREFIX}rows", "n"), expression=nodes.column(f"{names.PREFIX}{UPDATED}", "n")
    )
    parts = [
        exp.Literal.string(json[:-1] + ', "inserted": '),
        nodes.cast(exp.Paren(this=inserted), "string"),
        exp.Literal.string(', "updated": '),
        value(UPDATED),
        exp.Literal.string(', "deleted": '),
        value(DELETED),
        exp.Literal.string("}"),
    ]
    return exp.Anonymous(this="CONCAT", expressions=parts)

"""Rows without a key: equal rows are interchangeable, so each removed row takes away any one stored copy.

+n copies   n new rows, numbered
−n copies   the first n stored rows that are equal in every column (null-safe); fewer found means drift
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.comparable import form, same
from dbt_ivm.delta.weights import net
from dbt_ivm.operators import Filter, Operator, Project, Projection, Repeat, col
from dbt_ivm.refresh.apply.append import numbered
from dbt_ivm.refresh.apply.context import DRIFT, Applied, ApplyContext
from dbt_ivm.render.merge import (
    TARGET,
    case,
    delete,
    equal,
    fail,
    merge_into,
    null_safe_equal,
    number,
    source,
    target,
    when_matched,
    when_not_matched,
)

NEEDED, POSITION, FOUND_SEQ = names.hidden("needed", 1), names.hidden("position", 1), names.hidden("found_seq", 1)


def merge_bag(ctx: ApplyContext) -> Applied:
    columns = ctx.layout.stored
    change = net(ctx.required_change)
    added = Repeat(Filter(change, exp.GT(this=col(names.WEIGHT), expression=number(0))))
    new = numbered(ctx.query(added), columns)
    new.select(exp.alias_(nodes.null("bigint"), FOUND_SEQ, quoted=True), copy=False)
    data = exp.union(new, _located(ctx, _removed(change, columns), columns), distinct=False, copy=False)
    every = (*columns, names.ROW, FOUND_SEQ)
    # the state row matches by its sequence number too, so that the join stays one on equal columns
    using = ctx.with_state_row(data, every, state_values={FOUND_SEQ: nodes.cast(number(ctx.seq), "bigint")})
    is_new = exp.Is(this=source(FOUND_SEQ), expression=exp.Null())
    on = [
        ctx.same_part(),
        equal(target(names.SEQ), source(FOUND_SEQ)),
        null_safe_equal(target(names.ROW), source(names.ROW)),
        *ctx.within_bounds(TARGET),
    ]
    whens = [
        ctx.compare_and_set(),
        when_matched(None, delete()),
        ctx.state_must_exist(),
        when_not_matched(is_new, ctx.inserted({c: source(c) for c in (*columns, names.ROW)})),
    ]
    return Applied("merge by row", merge_into(ctx.storage, using, on, whens), change)


def _removed(change: Operator, columns: tuple[str, ...]) -> Operator:
    negative = Filter(change, exp.LT(this=col(names.WEIGHT), expression=number(0)))
    needed = Projection(NEEDED, exp.Neg(this=col(names.WEIGHT)))
    return Project(negative, (*(Projection(c, col(c)) for c in columns), needed))


def _located(ctx: ApplyContext, removed: Operator, columns: tuple[str, ...]) -> exp.Query:
    """The stored rows to delete, by number; as many as needed of each, or an error."""
    wanted = nodes.aliased(ctx.query(removed), "w")
    stored = ctx.storage.table()
    stored.set("alias", nodes.alias("v"))

    def of(alias: str, column: str) -> exp.Column:
        return nodes.column(column, alias)

    types = ctx.layout.types
    alike = [same(of("w", c), of("v", c), types[c]) for c in columns]
    group = [of("w", c) for c in columns]
    kinds = [form(of("w", c), types[c]) for c in columns]
    order = exp.Order(expressions=[exp.Ordered(this=of("v", names.SEQ)), exp.Ordered(this=of("v", names.ROW))])
    position = exp.Window(this=exp.RowNumber(), partition_by=kinds, order=order)
    found = exp.Window(this=exp.Count(this=of("v", names.ROW)), partition_by=[k.copy() for k in kinds])
    enough = exp.GTE(this=found, expression=of("w", NEEDED))
    checked = case(enough, of("v", names.ROW), nodes.cast(fail(DRIFT, *group), "bigint"))
    matched = (
        exp.select(*group)
        .select(exp.alias_(checked, names.ROW, quoted=True))
        .select(exp.alias_(of("v", names.SEQ), FOUND_SEQ, quoted=True))
        .select(exp.alias_(position, POSITION, quoted=True))
        .select(of("w", NEEDED))
        .from_(wanted)
        .join(
            stored,
            on=exp.and_(equal(of("v", names.PART), names.DATA_PART), *ctx.within_bounds("v"), *alike),
            join_type="LEFT",
        )
    )
    inner = nodes.aliased(matched, "l")
    first = exp.LTE(this=of("l", POSITION), expression=of("l", NEEDED))
    return exp.select(*(of("l", c) for c in (*columns, names.ROW, FOUND_SEQ))).from_(inner).where(first)

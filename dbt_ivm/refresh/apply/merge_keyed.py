"""Rows identified by a key: the net change of a key is an insert, an update or a delete by that key.

Every other combination proves that the key or the storage is not what it was believed to be, and aborts:

    added removed | in storage          not in storage
    1     0       | DUPLICATE_KEY       insert
    1     1       | update              DRIFT
    0     1       | delete              DRIFT
    >1    any     | DUPLICATE_KEY       DUPLICATE_KEY
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.comparable import comparable
from dbt_ivm.delta.weights import first, net
from dbt_ivm.operators import Aggregate, Measure, col
from dbt_ivm.refresh.apply.context import DRIFT, DUPLICATE, Applied, ApplyContext
from dbt_ivm.render.merge import (
    TARGET,
    case,
    delete,
    equal,
    fail,
    insert,
    merge_into,
    number,
    source,
    update,
    when_matched,
    when_not_matched,
)


def merge_keyed(ctx: ApplyContext) -> Applied:
    identity, payload, types = ctx.layout.identity, ctx.layout.payload, ctx.layout.types
    # a key can be the same and look different: 0.0 and -0.0
    written = {k: names.hidden("written", i) for i, k in enumerate(identity, 1) if comparable(col(k), types[k])}
    positive = exp.GT(this=col(names.WEIGHT), expression=number(0))
    measures = [
        Measure(names.ADDED, exp.Sum(this=case(positive, col(names.WEIGHT), number(0))), "bigint"),
        Measure(names.REMOVED, exp.Sum(this=case(positive, number(0), exp.Neg(this=col(names.WEIGHT)))), "bigint"),
    ]
    for column, name in [*written.items(), *((c, c) for c in payload)]:
        only_added = exp.Filter(this=first(col(column)), expression=exp.Where(this=positive.copy()))
        measures.append(Measure(name, only_added))
    values: dict[str, exp.Expr] = {k: source(n) for k, n in [*written.items(), *((c, c) for c in payload)]}
    # without key columns there is one row at most, and none when the change nets to nothing: not a global aggregate
    by_key = Aggregate(net(ctx.required_change), identity, tuple(measures))
    using = ctx.with_state_row(ctx.query(by_key), by_key.column_names)
    on = [ctx.same_part(), *ctx.same_identity(), *ctx.within_bounds(TARGET)]
    added, removed = source(names.ADDED), source(names.REMOVED)
    one_for_one = exp.and_(equal(added, 1), equal(removed, 1))
    keys = tuple(source(k) for k in identity)
    double = nodes.cast(fail(f"{DUPLICATE}{ctx.relied_on}: ", *keys), "bigint")
    drift = nodes.cast(fail(DRIFT, *keys), "bigint")
    whens = [
        ctx.compare_and_set(),
        when_matched(exp.and_(equal(added, 0), equal(removed, 1)), delete()),
        when_matched(
            one_for_one.copy(),
            update(values | {names.SEQ: number(ctx.seq + 1)}),
        ),
        when_matched(None, update({names.SEQ: double})),
        when_not_matched(
            exp.and_(ctx.is_data(), equal(added, 1), equal(removed, 0)),
            ctx.inserted({**{k: source(k) for k in identity}, **values}),
        ),
        ctx.state_must_exist(),
        when_not_matched(exp.GT(this=added, expression=number(1)), insert({names.SEQ: double.copy()})),
        when_not_matched(None, insert({names.SEQ: drift})),
    ]
    return Applied("merge by key", merge_into(ctx.storage, using, on, whens), by_key)

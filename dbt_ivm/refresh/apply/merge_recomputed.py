"""Groups with a measure that cannot be adjusted: every group the change touches is computed anew.

K = groups of the change        new rows = γ(Post ⋉ K)        groups of K without rows go away
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import names
from dbt_ivm.delta.weights import restrict_to
from dbt_ivm.operators import Aggregate, LeftLookup, Operator, Project, Projection, col
from dbt_ivm.refresh.apply.context import Applied, ApplyContext
from dbt_ivm.render.merge import (
    TARGET,
    coalesce,
    delete,
    differs,
    equal,
    merge_into,
    number,
    source,
    target,
    update,
    when_matched,
    when_not_matched,
)


def merge_recomputed(ctx: ApplyContext) -> Applied:
    group, payload, types = ctx.layout.identity, ctx.layout.payload, ctx.layout.types
    rows = _global(ctx) if not group else recomputed_groups(ctx)
    using = ctx.with_state_row(ctx.query(rows), rows.column_names)
    on = [ctx.same_part(), *ctx.same_identity(), *ctx.within_bounds(TARGET)]
    whens = [ctx.compare_and_set()]
    if group:
        whens.append(when_matched(equal(source(names.COUNT), 0), delete()))
    changed = exp.or_(*(differs(target(c), source(c), types[c]) for c in payload))
    whens += [
        when_matched(changed, update({c: source(c) for c in payload} | {names.SEQ: number(ctx.seq + 1)})),
        when_not_matched(
            exp.and_(ctx.is_data(), exp.GT(this=source(names.COUNT), expression=number(0))),
            ctx.inserted({c: source(c) for c in (*group, *payload)}),
        ),
        ctx.state_must_exist(),
    ]
    return Applied("merge recomputed groups", merge_into(ctx.storage, using, on, whens), rows)


def _global(ctx: ApplyContext) -> Operator:
    return Aggregate(ctx.post, (), ctx.layout.aggregate.measures, is_global=True)


def recomputed_groups(ctx: ApplyContext) -> Operator:
    group = ctx.layout.identity
    change = ctx.required_change
    affected = Aggregate(Project.keeping(change, group), group)
    anew = Aggregate(restrict_to(ctx.post, change, group), group, ctx.layout.aggregate.measures)
    found = Project(
        anew,
        (
            *(Projection(f"{names.PREFIX}found_{g}", col(g)) for g in group),
            *(Projection(c, col(c)) for c in ctx.layout.payload),
        ),
    )
    looked_up = LeftLookup(affected, found, tuple((g, f"{names.PREFIX}found_{g}") for g in group))
    projections = [Projection(g, col(g)) for g in group]
    for column in ctx.layout.payload:
        value = coalesce(col(column), number(0)) if column == names.COUNT else col(column)
        projections.append(Projection(column, value))
    return Project(looked_up, tuple(projections))

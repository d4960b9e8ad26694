"""Groups by log: each changed group's old row next to its new one, as a tombstone and a row.

    changes ⟕ stored groups   →   had, old values, new values   →   a row if there is one now, a tombstone if there was

The stored groups are looked up among the live rows.  A group whose row would not change gives neither.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.operators import LeftLookup, Operator, Project, Projection, SemiJoin, col
from dbt_ivm.refresh.apply.context import DRIFT, ApplyContext
from dbt_ivm.refresh.apply.merge_groups import (
    changes_value,
    group_changes,
    may_lose_extrema,
    new_value,
    stored_groups,
    stored_name,
    with_recomputed,
)
from dbt_ivm.refresh.apply.merge_recomputed import recomputed_groups
from dbt_ivm.refresh.apply.signed import DELETED, INSERTED, UPDATED
from dbt_ivm.render.merge import SOURCE, TARGET, case, coalesce, differs, equal, fail, number, source, target

SIDE = f"{names.PREFIX}side"
NEW_SIDE, OLD_SIDE = 1, 2


def regrouped_rows(ctx: ApplyContext) -> tuple[Operator, Callable[[], exp.Select]]:
    """Counts and sums of the change added to the stored groups."""
    measures = ctx.layout.measures
    assert measures is not None
    changes = group_changes(ctx)
    plan = _next_to_stored(ctx, changes)
    recomputed = may_lose_extrema(ctx)
    if recomputed:
        plan = with_recomputed(ctx, plan, plan.column_names)
    adjusted = {p.name: new_value(p, target(p.name), recomputed) for p in measures.partials}
    first = {p.name: new_value(p, None, recomputed) for p in measures.partials}
    new = {n: case(_had(), value, first[n]) for n, value in adjusted.items()}
    changed = exp.or_(*(changes_value(p, adjusted[p.name].copy()) for p in measures.partials))
    return plan, partial(_both_sides, ctx, plan, new, changed)


def recomputed_rows(ctx: ApplyContext) -> tuple[Operator, Callable[[], exp.Select]]:
    """Affected groups as they are now, next to the stored ones."""
    plan = _next_to_stored(ctx, recomputed_groups(ctx))
    new: dict[str, exp.Expr] = {c: source(c) for c in ctx.layout.payload}
    changed = exp.or_(*(differs(target(c), source(c), ctx.layout.types[c]) for c in ctx.layout.payload))
    return plan, partial(_both_sides, ctx, plan, new, changed)


def _next_to_stored(ctx: ApplyContext, changes: Operator) -> Operator:
    group = ctx.layout.identity
    affected = tuple(Projection(f"{names.PREFIX}affected_{i}", col(g)) for i, g in enumerate(group, 1))
    stored = SemiJoin(  # the table's rows never leave their place; only those of the changed groups go on
        stored_groups(ctx, (*group, *ctx.layout.payload), live=group),
        Project(changes, affected),
        tuple((stored_name(g), p.name) for g, p in zip(group, affected, strict=True)),
    )
    return LeftLookup(changes, stored, tuple((g, stored_name(g)) for g in group))


def _had() -> exp.Expr:
    return exp.Not(this=exp.Is(this=source(stored_name(names.PART)), expression=exp.Null()))


def _both_sides(ctx: ApplyContext, plan: Operator, new: dict[str, exp.Expr], changed: exp.Expr) -> exp.Select:
    """One row per group and side; ``new`` and ``changed`` may name stored columns as those of the MERGE target."""
    side = nodes.column(SIDE)
    is_new = equal(side, NEW_SIDE)
    total = coalesce(_from_stored(new[names.COUNT]), number(0))
    has_row = exp.NEQ(this=total, expression=number(0))
    keys = [source(k) for k in ctx.layout.identity]
    drift = nodes.cast(fail(DRIFT, *keys), "int")
    part = exp.Case(
        ifs=[
            exp.If(this=exp.LT(this=total.copy(), expression=number(0)), true=drift),
            exp.If(this=is_new, true=number(names.DATA_PART)),
        ],
        default=number(names.TOMBSTONE_PART),
    )
    became = case(has_row.copy(), exp.Literal.string(UPDATED), exp.Literal.string(DELETED))
    select = exp.Select(expressions=[exp.Alias(this=k, alias=nodes.name(k.name)) for k in keys])
    for column in ctx.layout.payload:
        value = case(is_new.copy(), _from_stored(new[column]), source(stored_name(column)))
        select.append("expressions", exp.Alias(this=value, alias=nodes.name(column)))
    select.append("expressions", exp.Alias(this=part, alias=nodes.name(names.PART)))
    came = case(_had(), exp.Literal.string(UPDATED), exp.Literal.string(INSERTED))
    kind = case(is_new.copy(), came, became)
    select.append("expressions", exp.Alias(this=kind, alias=nodes.name(names.STATE)))
    select = select.from_(nodes.aliased(ctx.query(plan), SOURCE), copy=False)
    both = exp.Anonymous(this="SEQUENCE", expressions=[number(NEW_SIDE), number(OLD_SIDE)])
    sides = exp.TableAlias(this=exp.to_identifier("sides"), columns=[exp.to_identifier(SIDE)])
    select.set("laterals", [exp.Lateral(this=exp.Explode(this=both), view=True, alias=sides)])
    there = exp.or_(exp.and_(is_new.copy(), has_row.copy()), exp.and_(equal(side.copy(), OLD_SIDE), _had()))
    # compared with something about the side, so that it stays above the two sides: for a condition below a projection
    # that renames its columns, Spark derives a copy of it for every choice of old and new names
    moved = exp.or_(exp.Not(this=_had()), _from_stored(changed))
    stays = exp.EQ(
        this=exp.Paren(this=moved), expression=exp.Paren(this=exp.GT(this=side.copy(), expression=number(0)))
    )
    return select.where(stays, there, copy=False)


def _from_stored(expression: exp.Expr) -> exp.Expr:
    """Columns of the MERGE target as the looked-up ones."""

    def looked_up(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.table == TARGET:
            return source(stored_name(node.name))
        return node

    return expression.copy().transform(looked_up)

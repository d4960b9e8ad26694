"""Conditions as near to the tables as they can be."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from sqlglot import exp

from dbt_ivm.nodes import conjuncts, replace_columns
from dbt_ivm.operators import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    LeftJoin,
    MovingFilter,
    Operator,
    Project,
    UnionAll,
    Windowing,
    col,
    references,
)
from dbt_ivm.operators.bottom_up import bottom_up


def push_filters(plan: Operator) -> Operator:
    """Move each condition below every operator that treats rows with and without it apart.

    Safe: left rows of joins that keep them depend on no other left row; whole groups and partitions are kept or dropped
    when a condition is on their columns only; projections, generators and unions work row by row.

        Filter a.x = b.y (LeftJoin (CrossJoin (a, b), c))   →   LeftJoin (Filter a.x = b.y (CrossJoin (a, b)), c)

    What a query joins in WHERE then reaches its join, also when outer joins or subqueries stand between.  A plan that
    several places share stays one, without their conditions.
    """

    def rule(operator: Operator, shared: Set[int]) -> Operator:
        if not isinstance(operator, Filter):
            return operator
        return _pushed(operator.input, conjuncts(operator.predicate), shared)

    return bottom_up(plan, rule)


def _pushed(plan: Operator, conditions: list[exp.Expr], shared: Set[int]) -> Operator:
    """The plan with only rows that meet the conditions."""
    if not conditions:
        return plan
    if id(plan) in shared:
        return Filter(plan, exp.and_(*(c.copy() for c in conditions)))
    if isinstance(plan, Filter):
        return _pushed(plan.input, [*conjuncts(plan.predicate), *conditions], shared)
    if isinstance(plan, Project):
        made_of = {p.name: p.expression for p in plan.projections}
        return replace(plan, input=_pushed(plan.input, [replace_columns(c, made_of) for c in conditions], shared))
    if isinstance(plan, UnionAll):
        members = []
        for member in plan.members:
            names = dict(zip(plan.column_names, member.column_names, strict=True))
            here = [replace_columns(c, {n: col(names[n]) for n in references(c)}) for c in conditions]
            members.append(_pushed(member, here, shared))
        return UnionAll(tuple(members))
    below = _passing(plan)
    own = [c for c in conditions if references(c) and set(references(c)) <= below]
    rest = [c for c in conditions if c not in own]
    if own:
        first, *others = plan.inputs
        plan = plan.with_inputs((_pushed(first, own, shared), *others))
    return Filter(plan, exp.and_(*(c.copy() for c in rest))) if rest else plan


def _passing(plan: Operator) -> set[str]:
    """Columns whose conditions may as well be met by the first input."""
    if isinstance(plan, (LeftJoin, Existence)):
        return set(plan.left.column_names)
    if isinstance(plan, Aggregate):
        return set(plan.group)
    if isinstance(plan, Windowing):
        return set(plan.partition)
    if isinstance(plan, (Generate, MovingFilter)):
        return set(plan.input.column_names)
    return set()

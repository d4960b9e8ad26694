"""One join instead of joins within joins, with the conditions above it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from sqlglot import exp

from dbt_ivm.nodes import conjuncts, replace_columns
from dbt_ivm.operators import Filter, Join, Operator, Project, Projection, col
from dbt_ivm.operators.bottom_up import bottom_up


def flatten_joins(plan: Operator) -> Operator:
    """Merge inner joins that only filters and projections separate, and take WHERE into the join.

    Always safe: selection, projection and inner joins commute as long as expressions move with their columns.  It lets
    key analysis see all equalities of a query that is written with subqueries, or with WHERE instead of ON.

        Filter a.x = b.y (CrossJoin (a, b))          →   Join ON a.x = b.y (a, b)
        Join (Project a.x + 1 AS z (Join (a, b)), c)  →   Project a.x + 1 AS z, … (Join (a, b, c))

    A join that several places share stays where it is.
    """
    return bottom_up(plan, _flattened)


def _flattened(operator: Operator, shared: Set[int]) -> Operator:
    if isinstance(operator, Filter) and isinstance(operator.input, Join) and id(operator.input) not in shared:
        join = operator.input
        return Join(join.members, (*join.predicates, *conjuncts(operator.predicate)))
    if not isinstance(operator, Join):
        return operator
    members: list[Operator] = []
    predicates: list[exp.Expr] = []
    made_of: dict[str, exp.Expr] = {}
    for member in operator.members:
        inner = member if id(member) in shared else _join_below(member)
        if isinstance(inner, _Inner):
            members += inner.join.members
            predicates += inner.join.predicates
            made_of |= inner.outputs
        else:
            members.append(member)
            made_of |= {n: col(n) for n in member.column_names}
    if len(members) == len(operator.members):
        return operator
    predicates += [replace_columns(p, made_of) for p in operator.predicates]
    every = [n for m in members for n in m.column_names]
    if len(set(every)) < len(every):  # two mentions of one subquery: their columns cannot be told apart below
        return operator
    joined = Join(tuple(members), tuple(predicates))
    return Project(joined, tuple(Projection(n, made_of[n]) for n in operator.column_names))


@dataclass(frozen=True)
class _Inner:
    """A join below projections; ``outputs`` are the member's columns as expressions over the join's."""

    join: Join
    outputs: dict[str, exp.Expr]


def _join_below(member: Operator) -> _Inner | None:
    """Filters right above a join are in it already, since inputs are visited first."""
    outputs: dict[str, exp.Expr] = {n: col(n) for n in member.column_names}
    while isinstance(member, Project):
        made_of = {p.name: p.expression for p in member.projections}
        outputs = {n: replace_columns(e, made_of) for n, e in outputs.items()}
        member = member.input
    return _Inner(member, outputs) if isinstance(member, Join) else None

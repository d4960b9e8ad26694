"""Left joins above inner joins, so that the inner joins meet."""

from __future__ import annotations

from collections.abc import Mapping, Set

from sqlglot import exp

from dbt_ivm.nodes import replace_columns
from dbt_ivm.operators import Join, LeftJoin, Operator, Project, Projection, col, references
from dbt_ivm.operators.bottom_up import bottom_up
from dbt_ivm.optimizer.push_filters import push_filters

#: The right side and the condition of a left join.
Pulled = tuple[Operator, tuple[exp.Expr, ...]]


def pull_left_joins(plan: Operator) -> Operator:
    """Move left joins out of the members of an inner join whose conditions do not use what they bring in.

    Safe: a left join keeps each row of its left side and looks at nothing but that row, so it does not matter whether
    an inner join on other columns comes before or after it.

        Join r.u = u.k (LeftJoin (r, s), u)   →   LeftJoin (Join r.u = u.k (r, u), s)

    Keys of the inner tables are then read off one join, and what they are looked up from identifies a row.  Conditions
    above go down again, to where they now can.

    See docs/optimizations/pull_left_joins.md.
    """

    def rule(operator: Operator, shared: Set[int]) -> Operator:
        return _above_join(operator, shared) if isinstance(operator, Join) else operator

    pulled = bottom_up(plan, rule)
    return plan if pulled is plan else push_filters(pulled)


def _above_join(join: Join, shared: Set[int]) -> Operator:
    """The inner join of what is below the left joins, with these on top."""
    used = {n for p in join.predicates for n in references(p)}
    cores: list[Operator] = []
    pulled: list[Pulled] = []
    made_of: dict[str, exp.Expr] = {}
    for member in join.members:
        core, joins, outputs = _without_left_joins(member, used, shared)
        cores.append(core)
        pulled += joins
        made_of |= outputs
    every = [n for part in (*cores, *(right for right, _ in pulled)) for n in part.column_names]
    if not pulled or len(set(every)) < len(every):  # two mentions of one subquery cannot be told apart
        return join
    plan: Operator = Join(tuple(cores), tuple(replace_columns(p, made_of) for p in join.predicates))
    for right, predicates in pulled:
        plan = LeftJoin(plan, right, predicates)
    return Project(plan, tuple(Projection(n, made_of[n]) for n in join.column_names))


def _without_left_joins(
    member: Operator, used: Set[str], shared: Set[int]
) -> tuple[Operator, list[Pulled], dict[str, exp.Expr]]:
    """What is below the left joins of a member, these from below to above, and the member's columns of both.

    Args:
        used: columns that the conditions of the inner join use.
    """
    outputs: dict[str, exp.Expr] = {n: col(n) for n in member.column_names}
    pulled: list[Pulled] = []
    while True:
        below, projections = member, []
        while isinstance(below, Project) and id(below) not in shared:
            projections.append(below)
            below = below.input
        if not isinstance(below, LeftJoin) or id(below) in shared:
            return member, pulled, outputs
        shown, above = outputs, pulled
        for projection in projections:
            made_of = {p.name: p.expression for p in projection.projections}
            shown = {n: _made_of(e, made_of) for n, e in shown.items()}
            above = [(right, tuple(_made_of(p, made_of) for p in predicates)) for right, predicates in above]
        needed = {n for name in used & set(shown) for n in references(shown[name])}
        if needed & set(below.right.column_names):
            return member, pulled, outputs
        outputs, pulled, member = shown, [(below.right, below.predicates), *above], below.left


def _made_of(expression: exp.Expr, made_of: Mapping[str, exp.Expr]) -> exp.Expr:
    """The expression over what is below a projection; columns that were pulled from below it are as they are."""
    kept = {n: col(n) for n in references(expression)}
    return replace_columns(expression, {**kept, **made_of})

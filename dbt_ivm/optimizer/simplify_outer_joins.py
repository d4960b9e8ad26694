"""Inner joins where an outer join's rows without a match are dropped anyway."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from dbt_ivm.analysis.never_null import never_null_in
from dbt_ivm.nodes import conjuncts
from dbt_ivm.operators import Filter, FullJoin, Join, LeftJoin, Operator, Project
from dbt_ivm.operators.bottom_up import bottom_up


def simplify_outer_joins(plan: Operator) -> Operator:
    """Replace an outer join by a simpler one when a condition above it is not true for its rows of NULLs.

    Safe: the condition drops exactly the rows that the simpler join does not make.

        Filter r.x > 5 (LeftJoin (l, r))    →   Filter r.x > 5 (Join (l, r))
        Filter l.x = 1 (FullJoin (l, r))    →   Filter l.x = 1 (LeftJoin (l, r))
        LeftJoin ON a.x = r.x (a, LeftJoin (l, r))  →   LeftJoin ON a.x = r.x (a, Join (l, r))

    Inner joins need one branch per changed table and no look at rows without a match; keys are read off them.
    """

    def rule(operator: Operator, shared: Set[int]) -> Operator:
        if isinstance(operator, Filter):
            known = {n for c in conjuncts(operator.predicate) for n in never_null_in(c)}
            simpler = _simplified(operator.input, known)
            return operator if simpler is operator.input else Filter(simpler, operator.predicate)
        if isinstance(operator, Join):
            known = {n for p in operator.predicates for n in never_null_in(p)}
            members = tuple(_simplified(m, known) for m in operator.members)
            same = all(new is old for new, old in zip(members, operator.members, strict=True))
            return operator if same else Join(members, operator.predicates)
        if isinstance(operator, LeftJoin):  # rows of the right side that cannot match are not in the result
            known = {n for p in operator.predicates for n in never_null_in(p)}
            right = _simplified(operator.right, known)
            return operator if right is operator.right else replace(operator, right=right)
        return operator

    return bottom_up(plan, rule)


def _simplified(plan: Operator, known: set[str]) -> Operator:
    """The plan, whose rows with a NULL in a known column are dropped above it."""
    if not known:
        return plan
    if isinstance(plan, Project):
        below = {p.expression.name for p in plan.projections if p.name in known and p.is_reference}
        simpler = _simplified(plan.input, below)
        return plan if simpler is plan.input else plan.with_inputs((simpler,))
    if isinstance(plan, Join):
        members = tuple(_simplified(m, known & set(m.column_names)) for m in plan.members)
        same = all(new is old for new, old in zip(members, plan.members, strict=True))
        return plan if same else Join(members, plan.predicates)
    if isinstance(plan, LeftJoin):
        if known & set(plan.right.column_names):
            return Join((plan.left, plan.right), plan.predicates)
        left = _simplified(plan.left, known)
        return plan if left is plan.left else LeftJoin(left, plan.right, plan.predicates)
    if isinstance(plan, FullJoin):
        has_left, has_right = (bool(known & set(side.column_names)) for side in plan.inputs)
        if has_left and has_right:
            return Join((plan.left, plan.right), plan.predicates)
        if has_left:
            return LeftJoin(plan.left, plan.right, plan.predicates)
        if has_right:
            return Project.keeping(LeftJoin(plan.right, plan.left, plan.predicates), plan.column_names)
    return plan

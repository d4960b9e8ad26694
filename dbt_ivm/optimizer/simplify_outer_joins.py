"""Inner joins where an outer join's rows without a match are dropped anyway."""

from __future__ import annotations

from collections.abc import Set

from sqlglot import exp

from dbt_ivm.nodes import conjuncts
from dbt_ivm.operators import Filter, FullJoin, Join, LeftJoin, Operator, Project, references
from dbt_ivm.operators.bottom_up import bottom_up

#: Comparisons that are not true when one side is NULL.
STRICT = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.ILike, exp.Between)
#: Expressions that are NULL when a column in them is.
CARRIED = (exp.Column, exp.Literal, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Cast)


def simplify_outer_joins(plan: Operator) -> Operator:
    """Replace an outer join by a simpler one when a condition above it is not true for its rows of NULLs.

    Safe: the condition drops exactly the rows that the simpler join does not make.

        Filter r.x > 5 (LeftJoin (l, r))    →   Filter r.x > 5 (Join (l, r))
        Filter l.x = 1 (FullJoin (l, r))    →   Filter l.x = 1 (LeftJoin (l, r))

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
        return operator

    return bottom_up(plan, rule)


def never_null_in(condition: exp.Expr) -> set[str]:
    """Columns that are not NULL in any row that meets the condition."""
    if isinstance(condition, exp.Paren):
        return never_null_in(condition.this)
    if isinstance(condition, exp.And):
        return never_null_in(condition.this) | never_null_in(condition.expression)
    if isinstance(condition, exp.Not) and isinstance(condition.this, exp.Is):
        inside = condition.this
        return _carried(inside.this) if isinstance(inside.expression, exp.Null) else set()
    if isinstance(condition, exp.In) and condition.expressions:
        return _carried(condition.this)
    if isinstance(condition, exp.Between):
        return _carried(condition.this)
    if isinstance(condition, STRICT):
        return _carried(condition.this) | _carried(condition.expression)
    return set()


def _carried(expression: exp.Expr) -> set[str]:
    """Columns without which the expression is NULL."""
    simple = all(isinstance(n, (*CARRIED, exp.Identifier, exp.DataType)) for n in expression.walk())
    return set(references(expression)) if simple else set()


def _simplified(plan: Operator, known: set[str]) -> Operator:
    if isinstance(plan, Project) and known:
        below = {p.expression.name for p in plan.projections if p.name in known and p.is_reference}
        simpler = _simplified(plan.input, below)
        return plan if simpler is plan.input else plan.with_inputs((simpler,))
    if isinstance(plan, LeftJoin) and known & set(plan.right.column_names):
        return Join((plan.left, plan.right), plan.predicates)
    if isinstance(plan, FullJoin):
        has_left, has_right = (bool(known & set(side.column_names)) for side in plan.inputs)
        if has_left and has_right:
            return Join((plan.left, plan.right), plan.predicates)
        if has_left:
            return LeftJoin(plan.left, plan.right, plan.predicates)
        if has_right:
            return Project.keeping(LeftJoin(plan.right, plan.left, plan.predicates), plan.column_names)
    return plan

"""Columns that a condition keeps from being NULL."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.operators import references

#: Comparisons that are not true when one side is NULL.
STRICT = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.ILike, exp.Between)
#: Expressions that are NULL when a column in them is.
CARRIED = (exp.Column, exp.Literal, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Cast)


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

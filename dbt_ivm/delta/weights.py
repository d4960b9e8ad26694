"""Arithmetic on weighted bags, written with the ordinary operators."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.comparable import comparable
from dbt_ivm.operators import (
    Aggregate,
    Filter,
    Join,
    Measure,
    Operator,
    Project,
    Projection,
    Repeat,
    SemiJoin,
    UnionAll,
    col,
)

WEIGHT_TYPE = "bigint"


def weighted(rows: Operator, factor: int = 1) -> Operator:
    """Every row with the factor as its weight; a weighted input has its weights multiplied by it."""
    if rows.is_weighted and factor == 1:
        return rows
    one = nodes.cast(exp.Literal.number(1), WEIGHT_TYPE)
    weight: exp.Expr = col(names.WEIGHT) if rows.is_weighted else one
    if factor == -1:
        weight = exp.Neg(this=weight)
    return Project(rows, (*_kept(rows.value_names), Projection(names.WEIGHT, weight)))


def minus(rows: Operator, removed: Operator) -> Operator:
    """rows − removed as one weighted bag."""
    return UnionAll((weighted(rows), weighted(removed, -1)))


def sum_of(branches: list[Operator]) -> Operator | None:
    """All branches together; None when there is none."""
    if not branches:
        return None
    return branches[0] if len(branches) == 1 else UnionAll(tuple(branches))


def in_each_branch(change: Operator, linear: Callable[[Operator], Operator]) -> Operator:
    """A linear operator on a sum is the sum of it on the branches, where it meets the join and drops columns early."""
    if not isinstance(change, UnionAll) or any(m.column_names != change.column_names for m in change.members):
        return linear(change)
    return UnionAll(tuple(in_each_branch(m, linear) for m in change.members))


def net(rows: Operator) -> Operator:
    """Add the weights of equal rows and drop those that cancel; equal is exactly equal (comparable.py)."""
    types = rows.types
    forms = [(n, f) for n in rows.value_names if (f := comparable(col(n), types[n])) is not None]
    total = Measure(names.WEIGHT, exp.Sum(this=col(names.WEIGHT)), WEIGHT_TYPE)
    group, measures, summed = rows.value_names, [total], rows
    if forms:
        made = {n: names.hidden("form", i) for i, (n, _) in enumerate(forms, 1)}
        group = tuple(made.get(n, n) for n in rows.value_names)
        summed = Project(rows, (*_kept(rows.column_names), *(Projection(made[n], f) for n, f in forms)))
        measures = [*(Measure(n, first(col(n)), types[n]) for n in made), total]
    totals = Aggregate(summed, group, tuple(measures), is_global=not group)
    kept = Filter(totals, exp.NEQ(this=col(names.WEIGHT), expression=exp.Literal.number(0)))
    return kept_with_weight(kept, rows.value_names) if forms else kept


def first(value: exp.Expr) -> exp.Expr:
    """Any of values that are all the same."""
    return exp.Anonymous(this="FIRST", expressions=[value])


def as_bag(rows: Operator) -> Operator:
    """Plain rows again: net, then repeat by weight.  Weights of a state are never negative."""
    return Repeat(net(rows)) if rows.is_weighted else rows


def restrict_to(rows: Operator, change: Operator, key: tuple[str, ...]) -> Operator:
    """Rows whose key occurs in the change (null-safe)."""
    renamed_key = tuple(Projection(f"{names.PREFIX}affected_{i}", col(k)) for i, k in enumerate(key, 1))
    keys = Aggregate(Project(change, renamed_key), tuple(p.name for p in renamed_key))
    return SemiJoin(rows, keys, tuple(zip(key, keys.group, strict=True)))


def renamed(rows: Operator, old: tuple[str, ...], new: tuple[str, ...]) -> Operator:
    """The columns ``old`` under the names ``new``; the weight stays."""
    if old == new:
        return rows
    projections = tuple(Projection(n, col(o)) for o, n in zip(old, new, strict=True))
    weight = (Projection(names.WEIGHT, col(names.WEIGHT)),) if rows.is_weighted else ()
    return Project(rows, projections + weight)


def join_weighted(join: Join, members: tuple[Operator, ...]) -> Operator:
    """The join of other members of the same columns, some of them weighted; weights multiply."""
    weights: list[str] = []
    inputs: list[Operator] = []
    for position, member in enumerate(members, 1):
        if member.is_weighted:
            weight = names.hidden("weight", position)
            weights.append(weight)
            projections = (*_kept(member.value_names), Projection(weight, col(names.WEIGHT)))
            member = Project(member, projections)
        inputs.append(member)
    joined = Join(tuple(inputs), join.predicates)
    if not weights:
        return joined
    product: exp.Expr = col(weights[0])
    for weight in weights[1:]:
        product = exp.Mul(this=product, expression=col(weight))
    return Project(joined, (*_kept(join.value_names), Projection(names.WEIGHT, product)))


def weight_last(rows: Operator) -> Operator:
    """The same rows with the weight behind the values, as unions expect it."""
    if not rows.is_weighted or rows.column_names[-1] == names.WEIGHT:
        return rows
    return kept_with_weight(rows, rows.value_names)


def kept_with_weight(rows: Operator, columns: tuple[str, ...]) -> Operator:
    """The named columns as they are, and the weight."""
    return Project(rows, (*_kept(columns), Projection(names.WEIGHT, col(names.WEIGHT))))


def _kept(columns: tuple[str, ...]) -> tuple[Projection, ...]:
    return tuple(Projection(n, col(n)) for n in columns)

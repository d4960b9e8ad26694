"""A looked-up table as rows see it that are looked up after the change (side 1) or before it (side −1).

inner   Post for all rows, −Δ beside it for those before: what is gone and what was not yet there cancels in the sum
left    Post without the changed keys K for all rows; Post | K after; Post | K − Δ, netted, before

A row without a match becomes a row of NULLs, which is not linear in the table: its matches must be those that are
there, not some that cancel.  ``tests/property/test_left_lookup_algebra.py`` has the rule in bags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.delta.touched import renaming
from dbt_ivm.delta.weights import WEIGHT_TYPE, minus, net, weighted
from dbt_ivm.operators.aggregate import Aggregate
from dbt_ivm.operators.base import Operator, col
from dbt_ivm.operators.filter import Filter
from dbt_ivm.operators.left_lookup import LeftLookup
from dbt_ivm.operators.lookup import AFTER, BEFORE, BOTH
from dbt_ivm.operators.project import Project, Projection
from dbt_ivm.operators.semi_join import SemiJoin
from dbt_ivm.operators.union_all import UnionAll

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext
    from dbt_ivm.operators.lookup import Lookup


def meets(side: str) -> exp.Expr:
    """Whether a looked-up row is shown to the row that looks it up."""
    to_all = exp.EQ(this=col(side), expression=_number(BOTH))
    return exp.Paren(this=exp.Or(this=to_all, expression=exp.EQ(this=col(names.SIDE), expression=col(side))))


def seen_by_inner(ctx: DeltaContext, member: Operator, weight: str, side: str) -> Operator:
    """The table for an inner join: rows with a weight and a side."""
    change = ctx.delta_of(member)
    assert change is not None
    now = _shown(weighted(ctx.post_of(member)), member, weight, side, _number(BOTH))
    return UnionAll((now, _shown(weighted(change, -1), member, weight, side, _number(BEFORE))))


def seen_by_left(
    ctx: DeltaContext, lookup: Lookup, member: Operator, wanted: Operator | None, weight: str, side: str
) -> Operator:
    """The table for a left join.

    Args:
        wanted: the keys that are looked up, if they are known.
        side: empty when all rows see the same, so that there are neither weights nor sides.
    """
    columns = tuple(c for _, c in lookup.on)
    after = ctx.post_of(member)
    close = after if wanted is None else SemiJoin(after, wanted, tuple(zip(columns, wanted.column_names, strict=True)))
    change = ctx.delta_of(member)
    if not side or change is None:
        return close
    key = tuple(names.hidden("changed", i) for i, _ in enumerate(columns, 1))
    changed = Aggregate(Project(change, renaming(columns, key)), key)
    on = tuple(zip(columns, key, strict=True))
    is_same = exp.If(this=exp.Is(this=col(key[0]), expression=exp.Null()), true=_number(BOTH))
    one = Projection(names.WEIGHT, nodes.cast(exp.Literal.number(1), WEIGHT_TYPE))
    flagged = LeftLookup(close, changed, on)
    values = tuple(Projection(n, col(n)) for n in member.value_names)
    flag = Projection(side, exp.Case(ifs=[is_same], default=_number(AFTER)))
    now = _shown(Project(flagged, (*values, one, flag)), member, weight, side, col(side))
    was: Operator
    if lookup.is_unique:
        was = weighted(Filter(change, exp.LT(this=col(names.WEIGHT), expression=exp.Literal.number(0))), -1)
    else:
        was = net(minus(SemiJoin(after, changed, on), change))
    return UnionAll((now, _shown(was, member, weight, side, _number(BEFORE))))


def _shown(rows: Operator, member: Operator, weight: str, side: str, to: exp.Expr) -> Operator:
    values = tuple(Projection(n, col(n)) for n in member.value_names)
    return Project(rows, (*values, Projection(weight, col(names.WEIGHT)), Projection(side, to)))


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))

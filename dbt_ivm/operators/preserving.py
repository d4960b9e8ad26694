"""Joins in which what becomes of a left row depends on that row and its matches only.  LINEAR in the left input:

    Δ(L ⊙ R) = (ΔL + A) ⊙ Post(R)  −  A ⊙ Pre(R)        A = rows of Pre(L) that match a changed row of R

Right rows that matter have a join key of the changes, so R is read within these keys where the condition has
equalities.  ``tests/property/test_preserving_algebra.py`` has the rule in bags.  Kinds: left_join.py, existence.py.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.errors import InternalError
from dbt_ivm.one_equal import compared_as, equals_one
from dbt_ivm.operators.aggregate import Aggregate
from dbt_ivm.operators.base import Linearity, Operator, col, references, text
from dbt_ivm.operators.project import Project, Projection
from dbt_ivm.operators.union_all import UnionAll
from dbt_ivm.types import are_comparable, infer

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class Pair:
    """An equality of the condition: an expression over the left input, one over the right, and whether NULLs match."""

    left: exp.Expr
    right: exp.Expr
    kind: type[exp.Expr] = exp.EQ


class PreservingJoin(Operator):
    left: Operator
    right: Operator
    predicates: tuple[exp.Expr, ...]

    linearity: ClassVar[Linearity] = Linearity.NON_LINEAR

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        left, right = inputs
        return replace(self, left=left, right=right)  # type: ignore[type-var]

    def check_inputs(self) -> None:
        for predicate in self.predicates:
            self.check_columns(references(predicate))
        shared = set(self.left.column_names) & set(self.right.column_names)
        if shared:
            raise InternalError(f"both sides of a join have the columns {sorted(shared)}")
        if self.right.is_weighted:
            raise InternalError("the right side of a join that keeps its left side must be plain rows")

    @property
    def condition(self) -> str:
        return " AND ".join(text(p) for p in self.predicates) or "true"

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Equalities between an expression over the left side and one over the right."""
        return equalities(self.predicates, self.left, self.right)

    @abstractmethod
    def changed_right(self, change: Operator) -> Operator:
        """The change of the right side, as far as it matters to this kind of join; plain rows."""

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.weights import as_bag, sum_of, weight_last, weighted

        left_change, right_change = ctx.delta_of(self.left), ctx.delta_of(self.right)
        if left_change is None and right_change is None:
            return None
        again = None if right_change is None else self.matching(ctx, self.left)
        rows = sum_of([part for part in (left_change, again) if part is not None])
        assert rows is not None
        after = ctx.post_of(self.right)
        parts = [weight_last(self.with_inputs((rows, self.within(after, left_change, right_change))))]
        if again is not None:
            before = as_bag(self.within(ctx.pre_of(self.right), None, right_change))
            parts.append(weighted(self.with_inputs((again, before)), -1))
        return sum_of(parts)

    def pre(self, ctx: DeltaContext) -> Operator:
        from dbt_ivm.delta.weights import as_bag

        return self.with_inputs((ctx.pre_of(self.left), as_bag(ctx.pre_of(self.right))))

    def matching(self, ctx: DeltaContext, left: Operator) -> Operator:
        """Rows of the left side, before the change, that match a changed right row; weighted."""
        from dbt_ivm.delta.weights import in_each_branch, weighted
        from dbt_ivm.operators.existence import Existence, Kind

        right_change = ctx.delta_of(self.right)
        if right_change is None:
            raise InternalError("a right side that did not change has no changed rows to match")
        changed = self.changed_right(right_change)
        before = weighted(ctx.pre_of(left))
        return in_each_branch(before, lambda rows: Existence(rows, changed, self.predicates, Kind.SEMI))

    def within(self, right: Operator, left_change: Operator | None, right_change: Operator | None) -> Operator:
        """The right rows whose join key is one of the changes'; all of them when the condition has no equality.

        Left rows that match a changed right row may match others, whose key must then be the same.
        """
        from dbt_ivm.operators.existence import Existence, Kind

        told = [one_key_each(p, self.left, self.right) for p in self.pairs]
        pairs = [
            p for p in told if p and are_comparable(infer(p.left, self.left.types), infer(p.right, self.right.types))
        ]
        if not pairs:
            return right
        keys = [names.hidden("joined", i) for i, _ in enumerate(pairs, 1)]
        parts: list[Operator] = []
        if left_change is not None:
            parts.append(Project(left_change, tuple(Projection(k, p.left) for k, p in zip(keys, pairs, strict=True))))
        if right_change is not None:
            parts.append(Project(right_change, tuple(Projection(k, p.right) for k, p in zip(keys, pairs, strict=True))))
        wanted = Aggregate(parts[0] if len(parts) == 1 else UnionAll(tuple(parts)), tuple(keys))
        same = tuple(p.kind(this=p.right.copy(), expression=col(k)) for k, p in zip(keys, pairs, strict=True))
        return Existence(right, wanted, same, Kind.SEMI)


def equalities(predicates: tuple[exp.Expr, ...], left: Operator, right: Operator) -> tuple[Pair, ...]:
    """The predicates that hold an expression over the left columns equal to one over the right ones."""
    here, there = set(left.value_names), set(right.value_names)
    found: list[Pair] = []
    for predicate in predicates:
        if not isinstance(predicate, (exp.EQ, exp.NullSafeEQ)):
            continue
        a, b = predicate.this, predicate.expression
        used_a, used_b = set(references(a)), set(references(b))
        if used_a and used_b and used_a <= here and used_b <= there:
            found.append(Pair(a, b, type(predicate)))
        elif used_a and used_b and used_b <= here and used_a <= there:
            found.append(Pair(b, a, type(predicate)))
    return tuple(found)


def one_key_each(pair: Pair, left: Operator, right: Operator) -> Pair | None:
    """The same equality with a right side of which a left row equals one value at most; None where there is none."""
    value, key = infer(pair.left, left.types), infer(pair.right, right.types)
    if equals_one(value, key):
        return pair
    kind = compared_as(value, key)
    return replace(pair, right=nodes.cast(pair.right.copy(), kind)) if kind else None

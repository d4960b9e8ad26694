"""FULL JOIN, any predicate.  The rows of a LEFT JOIN, and the right rows without a match:

L ⟗ R = (L ⟕ R)  ⊎  NULLs × (R ▷ L)          Δ: the changes of both (left_join.py, existence.py)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.operators.base import Column, Linearity, Operator, col, references, text
from dbt_ivm.operators.existence import Existence, Kind
from dbt_ivm.operators.left_join import LeftJoin
from dbt_ivm.operators.project import Project, Projection

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class FullJoin(Operator):
    left: Operator
    right: Operator
    predicates: tuple[exp.Expr, ...] = ()

    linearity: ClassVar[Linearity] = Linearity.NON_LINEAR

    def __post_init__(self) -> None:
        for predicate in self.predicates:
            self.check_columns(references(predicate))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        left, right = inputs
        return replace(self, left=left, right=right)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (*self.left.columns, *self.right.columns)

    def describe(self) -> str:
        return "FullJoin ON " + (" AND ".join(text(p) for p in self.predicates) or "true")

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.weights import sum_of

        matched = LeftJoin(self.left, self.right, self.predicates).delta(ctx)
        alone = Existence(self.right, self.left, self.predicates, Kind.ANTI).delta(ctx)
        if matched is None or alone is None:
            return None
        return sum_of([Project.keeping(matched, (*self.column_names, names.WEIGHT)), self._with_nulls(alone)])

    def pre(self, ctx: DeltaContext) -> Operator:
        from dbt_ivm.delta.weights import as_bag

        return self.with_inputs(tuple(as_bag(ctx.pre_of(i)) for i in self.inputs))

    def _with_nulls(self, alone: Operator) -> Operator:
        """Right rows with NULLs for the left ones."""
        types = self.left.types
        nulls = tuple(Projection(n, nodes.null(types[n])) for n in self.left.column_names)
        kept = tuple(Projection(n, col(n)) for n in (*self.right.column_names, names.WEIGHT))
        return Project(alone, nulls + kept)

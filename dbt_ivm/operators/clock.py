"""One row with the date or the time, for expressions that show it.  LEAF:  Δ = what it shows − what it showed before.

Conditions in WHERE have an operator of their own, which reads only rows that enter or leave (moving_filter.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dbt_ivm.catalog.clock import TYPES, clock_literal, clock_name
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.operators.base import Column, LeafOperator, Linearity, Operator
from dbt_ivm.operators.one_row import OneRow
from dbt_ivm.operators.project import Project, Projection

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class Clock(LeafOperator):
    kind: str
    name: str

    linearity: ClassVar[Linearity] = Linearity.LEAF

    @property
    def source(self) -> RelationName:
        return clock_name(self.kind)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column(self.name, TYPES[self.kind]),)

    def describe(self) -> str:
        return f"Clock current_{self.kind} AS {self.name}"

    def showing(self, version: int | None) -> Operator:
        return Project(OneRow(), (Projection(self.name, clock_literal(self.kind, version)),))

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.weights import sum_of, weighted

        window = ctx.window(self.source)
        if window is None:
            return None
        return sum_of([weighted(self.showing(window.last)), weighted(self.showing(window.first - 1), -1)])

    def post(self, ctx: DeltaContext) -> Operator:
        return self.showing(ctx.version(self.source))

    def pre(self, ctx: DeltaContext) -> Operator:
        window = ctx.window(self.source)
        assert window is not None
        return self.showing(window.first - 1)

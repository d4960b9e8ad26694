"""Joins with outer joins at the root of a view, maintained from the stored rows.

    Δ(V) = Σ over changed inputs T, one after the other:  V(T := ΔT) + net supplements          (delta/supplements.py)

Made by optimizer/net_supplements.py; it never stands in a view plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from dbt_ivm.operators.base import Column, Linearity, Operator

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class SupplementedJoins(Operator):
    """``stored`` are the stored rows under the names of the joins' columns, as far as they are needed."""

    joins: Operator
    stored: Operator

    linearity: ClassVar[Linearity] = Linearity.NON_LINEAR

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.joins,)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        (joins,) = inputs
        return replace(self, joins=joins)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.joins.columns

    def describe(self) -> str:
        return "joins with net supplements"

    def post(self, ctx: DeltaContext) -> Operator:
        return ctx.post_of(self.joins)

    def pre(self, ctx: DeltaContext) -> Operator:
        return ctx.pre_of(self.joins)

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.supplements import supplemented_change

        return supplemented_change(ctx, self.joins, self.stored)

"""The single row without columns that a SELECT without FROM reads.  LEAF:  it never changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dbt_ivm.operators.base import Column, LeafOperator, Linearity, Operator

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class OneRow(LeafOperator):
    linearity: ClassVar[Linearity] = Linearity.LEAF

    @property
    def columns(self) -> tuple[Column, ...]:
        return ()

    def describe(self) -> str:
        return "OneRow"

    def delta(self, ctx: DeltaContext) -> Operator | None:
        return None

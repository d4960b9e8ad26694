"""A weighted bag as plain rows: each row as often as its (positive) weight says.  Delta plans only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dbt_ivm import names
from dbt_ivm.errors import InternalError
from dbt_ivm.operators.base import Column, Linearity, Operator, UnaryOperator

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class Repeat(UnaryOperator):
    input: Operator

    linearity: ClassVar[Linearity] = Linearity.LINEAR

    def __post_init__(self) -> None:
        self.check_columns((names.WEIGHT,))

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(c for c in self.input.columns if c.name != names.WEIGHT)

    def describe(self) -> str:
        return "Repeat by weight"

    def delta(self, ctx: DeltaContext) -> Operator | None:
        raise InternalError("a repeat in a delta plan has no delta of its own")

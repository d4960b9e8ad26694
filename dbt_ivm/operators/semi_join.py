"""Rows of the input whose key appears among given keys.  Delta plans only, for the affected-key rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from dbt_ivm.errors import InternalError
from dbt_ivm.operators.base import Column, Linearity, Operator

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class SemiJoin(Operator):
    """``on`` pairs a column of the input with a column of the keys.

    Args:
        nulls: whether NULL finds NULL; where no key has one engines compare faster without.
    """

    input: Operator
    keys: Operator
    on: tuple[tuple[str, str], ...]
    nulls: bool = True

    linearity: ClassVar[Linearity] = Linearity.NON_LINEAR

    def __post_init__(self) -> None:
        self.check_columns(tuple(n for pair in self.on for n in pair))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input, self.keys)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        rows, keys = inputs
        return replace(self, input=rows, keys=keys)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    def describe(self) -> str:
        return "SemiJoin ON " + " AND ".join(f"{a} {'<=>' if self.nulls else '='} {b}" for a, b in self.on)

    def delta(self, ctx: DeltaContext) -> Operator | None:
        raise InternalError("a semi join in a delta plan has no delta of its own")

"""Each row of the input with the columns of its match, or NULLs.  Delta plans only; keys are unique on the right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from dbt_ivm.errors import InternalError
from dbt_ivm.operators.base import Column, Linearity, Operator

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class LeftLookup(Operator):
    """``nulls``: whether NULL finds NULL, as in SemiJoin."""

    input: Operator
    lookup: Operator
    on: tuple[tuple[str, str], ...]
    nulls: bool = True

    linearity: ClassVar[Linearity] = Linearity.NON_LINEAR

    def __post_init__(self) -> None:
        self.check_columns(tuple(n for pair in self.on for n in pair))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input, self.lookup)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        rows, lookup = inputs
        return replace(self, input=rows, lookup=lookup)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *self.lookup.columns)

    def describe(self) -> str:
        return "LeftLookup ON " + (
            " AND ".join(f"{a} {'<=>' if self.nulls else '='} {b}" for a, b in self.on) or "true"
        )

    def delta(self, ctx: DeltaContext) -> Operator | None:
        raise InternalError("a lookup in a delta plan has no delta of its own")

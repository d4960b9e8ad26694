"""Rows made from each row: explode and its kin (LATERAL VIEW, or in the select list).  LINEAR:  Δ(γ(R)) = γ(ΔR).

With ``outer`` a row that makes none is kept, with NULLs.  Nothing identifies rows unless their position is made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from dbt_ivm.operators.base import Column, Linearity, Operator, UnaryOperator, references, text

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class Generate(UnaryOperator):
    """``made`` are the columns that the generator makes; ``position``: the one that tells its rows apart, or ""."""

    input: Operator
    generator: exp.Expr
    made: tuple[Column, ...]
    outer: bool = False
    position: str = ""

    linearity: ClassVar[Linearity] = Linearity.LINEAR

    def __post_init__(self) -> None:
        self.check_columns(references(self.generator))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *self.made)

    def describe(self) -> str:
        outer = "outer " if self.outer else ""
        return f"Generate {outer}{text(self.generator)} AS {', '.join(c.name for c in self.made)}"

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.weights import in_each_branch, weight_last

        change = ctx.delta_of(self.input)
        if change is None:
            return None
        return in_each_branch(change, lambda branch: weight_last(replace(self, input=branch)))

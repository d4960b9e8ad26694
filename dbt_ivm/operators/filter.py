"""Selection.  LINEAR:  Δ(σp(R)) = σp(ΔR).  Keys of R survive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from dbt_ivm.operators.base import Column, Linearity, Operator, UnaryOperator, references, text

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class Filter(UnaryOperator):
    input: Operator
    predicate: exp.Expr

    linearity: ClassVar[Linearity] = Linearity.LINEAR

    def __post_init__(self) -> None:
        self.check_columns(references(self.predicate))

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    def describe(self) -> str:
        return f"Filter {text(self.predicate)}"

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.weights import in_each_branch

        change = ctx.delta_of(self.input)
        return None if change is None else in_each_branch(change, lambda branch: replace(self, input=branch))

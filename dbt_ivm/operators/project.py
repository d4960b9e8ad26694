"""Projection (bag semantics).  LINEAR:  Δ(πe(R)) = πe(ΔR).  The weight of a delta passes through."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from dbt_ivm import names
from dbt_ivm.operators.base import Column, Linearity, Operator, UnaryOperator, col, references, text
from dbt_ivm.types import infer

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class Projection:
    name: str
    expression: exp.Expr

    @property
    def is_reference(self) -> bool:
        return isinstance(self.expression, exp.Column)

    def __str__(self) -> str:
        if self.is_reference and self.expression.name == self.name:
            return self.name
        return f"{text(self.expression)} AS {self.name}"


@dataclass(frozen=True)
class Project(UnaryOperator):
    input: Operator
    projections: tuple[Projection, ...]

    linearity: ClassVar[Linearity] = Linearity.LINEAR

    def __post_init__(self) -> None:
        self.check_columns(tuple(n for p in self.projections for n in references(p.expression)))

    @staticmethod
    def keeping(source: Operator, wanted: tuple[str, ...]) -> Project:
        """Keep the named columns as they are."""
        return Project(source, tuple(Projection(n, col(n)) for n in wanted))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(p.name, infer(p.expression, self.input.types)) for p in self.projections)

    def describe(self) -> str:
        return f"Project {', '.join(str(p) for p in self.projections)}"

    def over(self, source: Operator) -> Operator:
        """The same projection of another input; a weight there is carried along."""
        plain = tuple(p for p in self.projections if p.name != names.WEIGHT)
        weight = (Projection(names.WEIGHT, col(names.WEIGHT)),) if source.is_weighted else ()
        return replace(self, input=source, projections=plain + weight)

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.weights import in_each_branch

        change = ctx.delta_of(self.input)
        return None if change is None else in_each_branch(change, self.over)

    def pre(self, ctx: DeltaContext) -> Operator:
        return self.over(ctx.pre_of(self.input))

"""Window functions over one partitioning.  NON-LINEAR, by affected partitions:

    K = partitions of Δ(R)          Δω(R) = +ω(Post(R) ⋉ K)  −ω(Pre(R) ⋉ K)

Each row of a partition may depend on all others.  Rows that come out the same cancel when the change is netted.  The
key of the input identifies a row.  Several partitionings in one query are several operators.
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
class WindowFunction:
    """``call`` is the whole expression with its OVER clause, over input columns."""

    name: str
    call: exp.Expr
    type: str = ""

    def __str__(self) -> str:
        return f"{text(self.call)} AS {self.name}"


@dataclass(frozen=True)
class Windowing(UnaryOperator):
    input: Operator
    partition: tuple[str, ...]
    functions: tuple[WindowFunction, ...]

    linearity: ClassVar[Linearity] = Linearity.NON_LINEAR

    def __post_init__(self) -> None:
        self.check_columns((*self.partition, *(n for f in self.functions for n in references(f.call))))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *(Column(f.name, f.type) for f in self.functions))

    def describe(self) -> str:
        return f"Window {', '.join(str(f) for f in self.functions)}"

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.weights import as_bag, restrict_to, sum_of, weighted

        change = ctx.delta_of(self.input)
        if change is None:
            return None
        after, before = ctx.post_of(self.input), ctx.pre_of(self.input)
        if self.partition:
            after = restrict_to(after, change, self.partition)
            before = restrict_to(before, change, self.partition)
        new = weighted(replace(self, input=after), 1)
        old = weighted(replace(self, input=as_bag(before)), -1)
        return sum_of([new, old])

    def pre(self, ctx: DeltaContext) -> Operator:
        from dbt_ivm.delta.weights import as_bag

        return replace(self, input=as_bag(ctx.pre_of(self.input)))

"""Grouping.  NON-LINEAR; the affected-key rule is always right:

    K = groups of Δ(R)          Δγ(R) = +γ(Post(R) ⋉ K)  −γ(Pre(R) ⋉ K)

As the root of a view the old rows are in the storage table and sums are adjusted in place
(``refresh/apply/merge_groups.py``); this rule serves aggregates below other operators.

``group`` are input columns (expressions are projected below).  A global aggregate has no group and always one row.
DISTINCT is the aggregate without measures.
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
class Measure:
    """An aggregate function over input columns."""

    name: str
    call: exp.Expr
    type: str = ""

    def __str__(self) -> str:
        return f"{text(self.call)} AS {self.name}"


@dataclass(frozen=True)
class Aggregate(UnaryOperator):
    input: Operator
    group: tuple[str, ...]
    measures: tuple[Measure, ...] = ()
    is_global: bool = False

    linearity: ClassVar[Linearity] = Linearity.NON_LINEAR

    def __post_init__(self) -> None:
        self.check_columns((*self.group, *(n for m in self.measures for n in references(m.call))))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        groups = tuple(Column(g, self.input.types[g]) for g in self.group)
        return groups + tuple(Column(m.name, m.type) for m in self.measures)

    def describe(self) -> str:
        if not self.measures:
            return f"Distinct {', '.join(self.group)}"
        by = f" BY {', '.join(self.group)}" if self.group else ""
        return f"Aggregate{by}: {', '.join(str(m) for m in self.measures)}"

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.weights import as_bag, restrict_to, sum_of, weighted

        change = ctx.delta_of(self.input)
        if change is None:
            return None
        after, before = ctx.post_of(self.input), ctx.pre_of(self.input)
        if self.group:
            after = restrict_to(after, change, self.group)
            before = restrict_to(before, change, self.group)
        new = weighted(replace(self, input=after), 1)
        old = weighted(replace(self, input=as_bag(before)), -1)
        return sum_of([new, old])

    def pre(self, ctx: DeltaContext) -> Operator:
        from dbt_ivm.delta.weights import as_bag

        return replace(self, input=as_bag(ctx.pre_of(self.input)))

"""Window functions over one partitioning.  NON-LINEAR, by affected partitions:

    K = partitions of Δ(R)          Δω(R) = +ω(Post(R) ⋉ K)  −ω(Pre(R) ⋉ K)

Without PARTITION BY everything is one partition.  Where every function looks only back, rows that sort before the
first changed one of their partition come out the same and are left out; so are those after the last one where
functions look only ahead (``delta/first_change.py``):

    m(P) = first changed order key of P      Δω(R) = +σ(key ≥ m)(ω(Post(R) ⋉ K))  −σ(key ≥ m)(ω(Pre(R) ⋉ K))

Other rows that come out the same cancel when the change is netted.  The key of the input identifies a row; without one
the partition and a row_number do.  Several partitionings in one query are several operators; those that stand on one
another over the same partitioning change together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from dbt_ivm.operators.base import Column, Linearity, Operator, UnaryOperator, references, text
from dbt_ivm.operators.filter import Filter
from dbt_ivm.operators.project import Project

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext
    from dbt_ivm.delta.first_change import FirstChanges


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

    @cached_property
    def stack(self) -> tuple[Windowing, ...]:
        """This operator and those directly below it over the same partitioning, from the top."""
        below = self.input
        return (self, *below.stack) if isinstance(below, Windowing) and below.partition == self.partition else (self,)

    @property
    def functions_apart(self) -> tuple[WindowFunction, ...]:
        """The functions of the stack; none when one uses what another gives, be it to put equal rows in order."""
        functions = tuple(f for window in self.stack for f in window.functions)
        made = {f.name for f in functions}
        return () if any(made & set(references(f.call)) for f in functions) else functions

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.first_change import edges_of, first_changes
        from dbt_ivm.delta.weights import as_bag, restrict_to, sum_of, weighted

        rows = self.stack[-1].input
        change = ctx.delta_of(rows)
        if change is None:
            return None
        after, before = ctx.post_of(rows), ctx.pre_of(rows)
        edges = edges_of(self.functions_apart)
        if edges:
            firsts = first_changes(change, self.partition, edges)
            new, old = self._from(firsts, after), self._from(firsts, before)
        else:
            if self.partition:
                after = restrict_to(after, change, self.partition)
                before = restrict_to(before, change, self.partition)
            new, old = self._over(after), self._over(as_bag(before))
        return sum_of([weighted(new, 1), weighted(old, -1)])

    def _over(self, rows: Operator) -> Operator:
        """The stack over other rows of the same columns."""
        for window in reversed(self.stack):
            rows = replace(window, input=rows)
        return rows

    def _from(self, firsts: FirstChanges, rows: Operator) -> Operator:
        """The result over changed partitions, from their first changes on."""
        from dbt_ivm.delta.weights import as_bag

        whole = self._over(as_bag(firsts.joined_to(rows)))
        return Project.keeping(Filter(whole, firsts.is_reached), self.column_names)

    def pre(self, ctx: DeltaContext) -> Operator:
        from dbt_ivm.delta.weights import as_bag

        return replace(self, input=as_bag(ctx.pre_of(self.input)))

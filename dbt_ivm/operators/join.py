"""Inner join of any number of inputs, any predicate.  MULTILINEAR:

    Δ(R1 ⋈ … ⋈ Rn) = Σi  Pre(R1) ⋈ … ⋈ Pre(Ri-1) ⋈ ΔRi ⋈ Post(Ri+1) ⋈ … ⋈ Post(Rn)

One branch per changed input; weights multiply.  A cross join has no predicates.  The keys of all inputs together
identify a row of the join.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from dbt_ivm.errors import InternalError
from dbt_ivm.operators.base import Column, Linearity, NaryOperator, Operator, references, text

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class Join(NaryOperator):
    members: tuple[Operator, ...]
    predicates: tuple[exp.Expr, ...] = ()

    linearity: ClassVar[Linearity] = Linearity.MULTILINEAR

    def __post_init__(self) -> None:
        for predicate in self.predicates:
            self.check_columns(references(predicate))
        every = [n for m in self.members for n in m.column_names]
        if len(set(every)) != len(every):
            raise InternalError(f"join members share column names: {sorted(n for n in every if every.count(n) > 1)}")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(c for m in self.members for c in m.columns)

    def describe(self) -> str:
        on = " AND ".join(text(p) for p in self.predicates)
        return f"Join ON {on}" if on else "CrossJoin"

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.weights import join_weighted, sum_of

        branches = []
        for position, member in enumerate(self.members):
            change = ctx.delta_of(member)
            if change is None:
                continue
            before = [ctx.pre_of(m) for m in self.members[:position]]
            after = [ctx.post_of(m) for m in self.members[position + 1 :]]
            branches.append(join_weighted(self, (*before, change, *after)))
        return sum_of(branches)

    def pre(self, ctx: DeltaContext) -> Operator:
        from dbt_ivm.delta.weights import join_weighted

        return join_weighted(self, tuple(ctx.pre_of(m) for m in self.members))

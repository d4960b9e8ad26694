"""Bag union.  LINEAR:  Δ(R ⊎ S) = ΔR ⊎ ΔS.  Columns match by position and take the first input's names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from dbt_ivm.errors import InternalError
from dbt_ivm.operators.base import Column, Linearity, NaryOperator, Operator

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class UnionAll(NaryOperator):
    members: tuple[Operator, ...]

    linearity: ClassVar[Linearity] = Linearity.LINEAR

    def __post_init__(self) -> None:
        widths = {len(m.column_names) for m in self.members}
        weighted = {m.is_weighted for m in self.members}
        if len(widths) != 1 or len(weighted) != 1:
            raise InternalError(f"union of unlike inputs: {[m.column_names for m in self.members]}")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(
            Column(first.name, first.type if all(m.columns[i].type == first.type for m in self.members) else "")
            for i, first in enumerate(self.members[0].columns)
        )

    def describe(self) -> str:
        return "UnionAll"

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.weights import renamed, sum_of

        changes = [(m, ctx.delta_of(m)) for m in self.members]
        return sum_of([renamed(c, m.value_names, self.value_names) for m, c in changes if c is not None])

    def pre(self, ctx: DeltaContext) -> Operator:
        from dbt_ivm.delta.weights import weighted

        members = tuple(ctx.pre_of(m) for m in self.members)
        if any(m.is_weighted for m in members):
            members = tuple(weighted(m) for m in members)
        return replace(self, members=members)

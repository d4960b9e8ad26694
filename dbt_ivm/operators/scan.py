"""Scan of a stored table.  LEAF:  Δ = the netted change feed (or what was kept of it),  Pre = Post − Δ.

Only the columns the view uses are read.  ``version`` pins the snapshot; None reads a table without versions,
which by definition did not change.  ``live`` is the identity of a storage table, whose dead rows do not count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.operators.base import Column, LeafOperator, Linearity, Operator

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class Field:
    """A column of the stored table under its name in the plan."""

    name: str
    column: str
    type: str = ""


@dataclass(frozen=True)
class Scan(LeafOperator):
    source: RelationName
    fields: tuple[Field, ...]
    version: int | None = None
    live: tuple[str, ...] = ()

    linearity: ClassVar[Linearity] = Linearity.LEAF

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(f.name, f.type) for f in self.fields)

    def describe(self) -> str:
        at = "" if self.version is None else f" version {self.version}"
        fields = ", ".join(f.name for f in self.fields)
        return f"Scan {self.source}{at} [{fields}]"

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.weights import net
        from dbt_ivm.operators.scan_changes import ScanChanges

        window = ctx.window(self.source)
        if window is None:
            return None
        kept = ctx.kept(self.source)
        if kept is not None:
            return kept.change_of(self.fields)
        return net(ScanChanges(self.source, self.fields, window.first, window.last, self.live))

    def post(self, ctx: DeltaContext) -> Operator:
        return replace(self, version=ctx.version(self.source))

    def pre(self, ctx: DeltaContext) -> Operator:
        from dbt_ivm.delta.weights import minus

        delta = ctx.delta_of(self)
        post = ctx.post_of(self)
        return post if delta is None else minus(post, delta)

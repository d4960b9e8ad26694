"""Rows of a source's change feed between two versions (both inclusive), weighted +1 and -1.  Delta plans only.

Of a storage table the feed of its tombstones counts with the opposite sign.  Views read such a table by its parts, so
the column tells; whether it may have tombstones now (``live``) does not: a rebuild without them removes those it had.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from dbt_ivm import names
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.errors import InternalError
from dbt_ivm.operators.base import Column, LeafOperator, Linearity, Operator
from dbt_ivm.operators.scan import Field

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class ScanChanges(LeafOperator):
    source: RelationName
    fields: tuple[Field, ...]
    first: int
    last: int
    live: tuple[str, ...] = ()

    linearity: ClassVar[Linearity] = Linearity.LEAF

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (*(Column(f.name, f.type) for f in self.fields), Column(names.WEIGHT, "bigint"))

    def describe(self) -> str:
        fields = ", ".join(f.name for f in self.fields)
        return f"Changes of {self.source} versions {self.first} to {self.last} [{fields}]"

    def delta(self, ctx: DeltaContext) -> Operator | None:
        raise InternalError("a change feed has no delta of its own")

"""Rows that an earlier statement of the same refresh computed and kept under a name.  Delta plans only.

Δ of a source used twice      read from the feed once
a change looked at            computed once, then applied
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from dbt_ivm.errors import InternalError
from dbt_ivm.operators.base import Column, LeafOperator, Linearity, Operator
from dbt_ivm.operators.scan import Field

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class ScanKept(LeafOperator):
    """``what`` is kept under ``name``; ``small``: known to be few rows."""

    name: str
    fields: tuple[Field, ...]
    what: str
    small: bool = False

    linearity: ClassVar[Linearity] = Linearity.LEAF

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(f.name, f.type) for f in self.fields)

    def describe(self) -> str:
        return f"{self.what}, kept [{', '.join(f.name for f in self.fields)}]"

    def delta(self, ctx: DeltaContext) -> Operator | None:
        raise InternalError("a kept change has no delta of its own")

"""Few rows that an earlier statement of the same refresh fetched, written into the next one as literals.

Delta plans only.  Engines know such rows when they plan: they are broadcast, and what needs none of them is not read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.errors import InternalError
from dbt_ivm.operators.base import Column, LeafOperator, Linearity, Operator
from dbt_ivm.operators.scan import Field

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext

#: Values as texts, in the order of the fields; None is NULL.
TextRow = tuple[str | None, ...]


@dataclass(frozen=True)
class ScanValues(LeafOperator):
    """``rows`` have a text per field; ``what`` they are, for explain; ``of`` the table of their texts and its version.

    A column of type char(n) compares differently from other texts, and only its table knows that it is one.
    """

    fields: tuple[Field, ...]
    rows: tuple[TextRow, ...]
    what: str
    of: tuple[RelationName, int | None] | None = None

    linearity: ClassVar[Linearity] = Linearity.LEAF

    def __post_init__(self) -> None:
        if not self.rows:
            raise InternalError(f"{self.what}: no rows are no change, not an empty one")
        if any(len(row) != len(self.fields) for row in self.rows):
            raise InternalError(f"{self.what}: every row needs {len(self.fields)} values")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(f.name, f.type) for f in self.fields)

    def describe(self) -> str:
        return f"{self.what}, {len(self.rows)} rows carried [{', '.join(f.name for f in self.fields)}]"

    def delta(self, ctx: DeltaContext) -> Operator | None:
        raise InternalError("carried rows have no delta of their own")

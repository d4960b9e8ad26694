"""Tables, views, keys and the catalog that holds them: plain facts, no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.errors import UserError


@dataclass(frozen=True)
class TableColumn:
    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True)
class Key:
    """Columns that identify a row (null-safe: at most one row per combination, NULL counting as a value)."""

    columns: tuple[str, ...]
    origin: str = "declared"

    def __str__(self) -> str:
        return f"({', '.join(self.columns)})"


@dataclass(frozen=True)
class ForeignKey:
    """
    Args:
        stands_for: the name of the edge that users declared, when this one leads to an auxiliary view instead.
        is_partial: rows may reference nothing here although every declared key holds.
    """

    columns: tuple[str, ...]
    to: RelationName
    to_columns: tuple[str, ...]
    stands_for: str = ""
    is_partial: bool = False


@dataclass(frozen=True)
class Table:
    """A table whose rows are stored.  ``versioned`` tables are read at a pinned version; ``live`` is the
    identity of a storage table, which may hold dead rows."""

    name: RelationName
    columns: tuple[TableColumn, ...]
    keys: tuple[Key, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    versioned: bool = True
    live: tuple[str, ...] = ()

    def column(self, name: str) -> TableColumn:
        for column in self.columns:
            if column.name.lower() == name.lower():
                return column
        have = ", ".join(c.name for c in self.columns)
        raise UserError("IVM_UNKNOWN_COLUMN", f"{self.name} has no column '{name}'; it has: {have}")


@dataclass(frozen=True)
class View:
    """A view in the catalog.  ``output`` are the names its query produces, in the order of ``columns``."""

    name: RelationName
    columns: tuple[TableColumn, ...]
    sql: str
    namespace: tuple[str, ...] = ()
    output: tuple[str, ...] = ()


@dataclass(frozen=True)
class Catalog:
    """The relations a query may mention."""

    relations: tuple[Table | View, ...] = field(default_factory=tuple)

    @staticmethod
    def of(relations: Iterable[Table | View]) -> Catalog:
        return Catalog(tuple(relations))

    def find(self, name: RelationName) -> Table | View:
        for relation in self.relations:
            if relation.name == name:
                return relation
        for relation in self.relations:
            if relation.name.matches(name):
                return relation
        raise UserError("IVM_UNKNOWN_RELATION", f"the query reads {name}, which does not exist")

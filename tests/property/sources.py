"""Random tables and what happens to them: commits with the change feed rows Delta would give."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from dbt_ivm.api import table
from dbt_ivm.catalog.tables import Table
from tests.property.duck import Duck, Row

#: Spark type, DuckDB type and a small domain, so that rows repeat and join.
DOMAINS: dict[str, tuple[str, list[object]]] = {
    "int": ("INTEGER", [None, 0, 1, 2, 3]),
    "string": ("VARCHAR", [None, "", "a", "b"]),
    "date": ("DATE", [None, *(date(2024, 1, day) for day in range(1, 8))]),
    "bigint": ("BIGINT", [None, 1, 2**53, 2**53 + 1]),
    "double": ("DOUBLE", [None, 1.0, float(2**53)]),
    "decimal(9,2)": ("DECIMAL(9,2)", [None, Decimal("0.00"), Decimal("0.50"), Decimal("1.25")]),
}
FEED = {"_change_type": "VARCHAR", "_commit_version": "BIGINT"}


@dataclass(frozen=True)
class Source:
    """A table of the generated schema; ``key`` is how many leading columns are its declared primary key.

    A foreign key is (columns, table, its columns).
    """

    name: str
    columns: dict[str, str]
    key: int = 0
    foreign_keys: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = ()

    @property
    def table(self) -> Table:
        declared = [(columns, f"db.{to}", keys) for columns, to, keys in self.foreign_keys]
        return table(f"db.{self.name}", self.columns, primary_key=list(self.columns)[: self.key], foreign_keys=declared)

    def key_of(self, row: Row) -> Row:
        return row[: self.key]


@dataclass
class Timeline:
    """The rows of a source after each commit, and its change feed.  Version 0 is the first load."""

    source: Source
    enforce_key: bool = True
    rows: list[Row] = field(default_factory=list)
    version: int = 0
    feed: list[tuple[int, str, Row]] = field(default_factory=list)

    def commit_first(self, rows: list[Row]) -> None:
        """Version 0."""
        for row in rows:
            self._insert(row)

    def commit(self, operation: Operation) -> None:
        """Apply one statement; it becomes one version, also when it changed nothing."""
        self.version += 1
        kind, picks, rows = operation
        chosen = sorted({p % len(self.rows) for p in picks}) if self.rows else []
        if kind == "insert":
            for row in rows:
                self._insert(row)
        elif kind == "delete":
            self._delete(chosen)
        elif kind == "delete all":
            self._delete(list(range(len(self.rows))))
        elif kind == "rewrite":  # INSERT OVERWRITE of the same rows: everything leaves and comes back
            kept = list(self.rows)
            self._delete(list(range(len(self.rows))))
            for row in kept:
                self._insert(row)
        elif kind == "update":
            for position, row in zip(chosen, rows, strict=False):
                self._update(position, row)
        elif kind == "touch":  # an update that leaves the row as it was
            for position in chosen:
                self._update(position, self.rows[position])
        elif kind == "reinsert":
            gone = [self.rows[p] for p in chosen]
            self._delete(chosen)
            self.version += 1
            for row, new in zip(gone, rows, strict=False):
                self._insert(self.source.key_of(row) + new[self.source.key :])

    def is_insert_only(self, first: int, last: int) -> bool:
        return all(kind == "insert" for version, kind, _ in self.feed if first <= version <= last)

    def _holds_key(self, row: Row) -> int | None:
        if not (self.enforce_key and self.source.key):
            return None
        key = self.source.key_of(row)
        return next((i for i, r in enumerate(self.rows) if self.source.key_of(r) == key), None)

    def _insert(self, row: Row) -> None:
        """With an enforced key this is an upsert."""
        position = self._holds_key(row)
        if position is not None:
            self._update(position, row)
            return
        self.rows.append(row)
        self.feed.append((self.version, "insert", row))

    def _delete(self, positions: list[int]) -> None:
        for position in reversed(positions):
            self.feed.append((self.version, "delete", self.rows.pop(position)))

    def _update(self, position: int, row: Row) -> None:
        holder = self._holds_key(row)
        if holder is not None and holder != position:
            row = self.source.key_of(self.rows[position]) + row[self.source.key :]
        self.feed.append((self.version, "update_preimage", self.rows[position]))
        self.feed.append((self.version, "update_postimage", row))
        self.rows[position] = row

    def load_snapshot(self, duck: Duck) -> None:
        duck.create(f"{self.source.name}__v{self.version}", _types(self.source), self.rows)

    def load_feed(self, duck: Duck) -> None:
        rows = [(*row, kind, version) for version, kind, row in self.feed]
        duck.create(f"{self.source.name}__changes", _types(self.source) | FEED, rows)


Operation = tuple[str, list[int], list[Row]]
OPERATIONS = ("insert", "insert", "update", "update", "delete", "delete", "reinsert", "touch", "delete all", "rewrite")


def _types(source: Source) -> dict[str, str]:
    return {name: DOMAINS[kind][0] for name, kind in source.columns.items()}


@st.composite
def sources(draw: Any) -> list[Source]:
    """One to four tables of two to four columns; keys are the first one or two columns, of all tables or some."""
    found = []
    keys = draw(st.sampled_from([[0], [0, 1], [1, 2]]))
    for number in range(draw(st.sampled_from([1, 2, 2, 3, 3, 4]))):
        kinds = draw(st.lists(st.sampled_from(["int", "string", "int", "decimal(9,2)"]), min_size=1, max_size=3))
        columns = {f"c{i}": kind for i, kind in enumerate(["int", *kinds])}
        found.append(Source(f"t{number}", columns, draw(st.sampled_from(keys))))
    return found


def rows_of(source: Source) -> st.SearchStrategy[Row]:
    return st.tuples(*(st.sampled_from(DOMAINS[kind][1]) for kind in source.columns.values()))


def operations_on(source: Source, kinds: tuple[str, ...]) -> st.SearchStrategy[Operation]:
    rows = st.lists(rows_of(source), min_size=1, max_size=3)
    picks = st.lists(st.integers(0, 7), min_size=1, max_size=2)
    return st.tuples(st.sampled_from(kinds), picks, rows)

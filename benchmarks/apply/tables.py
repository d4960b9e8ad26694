"""The sources of a project: a fact table with a key and a dimension of 18,000 rows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

DIMENSION_ROWS = 18_000
ROWS_PER_FILE = 1_000_000
NARROW = {
    "id": "id",
    "item": f"id * 7919 % {DIMENSION_ROWS}",
    "amount": "cast(id * 31 % 100000 / 100 as decimal(9,2))",
    "day": "cast(id % 1800 as int)",
    "quantity": "cast(id % 50 as int)",
}
#: modest cardinality: a copy of the largest table must fit on a laptop's disk several times
PAYLOAD = {f"text{i}": f"concat('some text ', id * {i + 3} % {400 + i * 37}, ' of column {i}')" for i in range(10)}
PAYLOAD |= {f"number{i}": f"cast(id * {i + 7} % {5000 + i * 911} / 100 as decimal(12,2))" for i in range(10)}


class Tables:
    """Creates them, knows the next free id and the last change's number."""

    def __init__(
        self,
        spark: Any,
        warehouse: Path,
        schema: str,
        width: str,
        view_rows: int,
        rows_per_group: int | None = None,
        deletion_vectors: bool = False,
    ) -> None:
        """
        Args:
            rows_per_group: for views that group by ``id div 2``: 2, or to save time 1 (then only even ids exist).
            deletion_vectors: of the sources; off is Delta's default.  With them the feed of a DELETE reads the files
                that it touched.
        """
        self.spark = spark
        self.schema = schema
        self.folder = warehouse / f"{schema}.db"
        vectors = str(deletion_vectors).lower()
        self.properties = f"tblproperties (delta.enableChangeDataFeed = true, delta.enableDeletionVectors = {vectors})"
        self.expressions = NARROW | (PAYLOAD if width == "wide" else {})
        self.columns = [*self.expressions, "version_number"]
        self.version_number = 0
        self.step = 2 if rows_per_group == 1 else 1
        self.rows = view_rows * (rows_per_group or 1)
        self.next_id = self.rows * self.step
        self._create()

    def sql(self, statement: str) -> list[Any]:
        found: list[Any] = self.spark.sql(statement).collect()
        return found

    def rows_from(self, first: int, end: int, files: int = 1) -> str:
        """A SELECT of new fact rows with these ids."""
        outputs = ", ".join(f"{expression} as {name}" for name, expression in self.expressions.items())
        version = f"cast({self.version_number} as bigint) as version_number"
        return f"select {outputs}, {version} from range({first}, {end}, {self.step}, {files})"

    def _create(self) -> None:
        self.sql(f"create database {self.schema}")
        files = max(2, self.rows // ROWS_PER_FILE)
        fact = self.rows_from(0, self.next_id, files)
        self.sql(f"create table {self.schema}.fact using delta {self.properties} as {fact}")
        self.sql(
            f"create table {self.schema}.dim using delta {self.properties} as select id, concat('category ', id % 40)"
            f" as category, concat('brand ', id % 900) as brand from range({DIMENSION_ROWS})"
        )

    def vacuum(self, relation: str) -> None:
        """Files that a rewrite replaced; a day of benchmarks would fill the disk."""
        self.sql(f"vacuum {relation} retain 0 hours")

    def drop(self) -> None:
        self.sql(f"drop database if exists {self.schema} cascade")
        shutil.rmtree(self.folder, ignore_errors=True)

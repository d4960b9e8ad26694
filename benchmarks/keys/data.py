"""The generated tables of the views as parquet files."""

from __future__ import annotations

from pathlib import Path

from benchmarks import generator
from benchmarks.keys.schema import TABLES, Table

DEFAULT_FOLDER = generator.DEFAULT_FOLDER


class Data:
    def __init__(self, scale: float, folder: Path = DEFAULT_FOLDER) -> None:
        self.scale = scale
        self.folder = folder / f"sf{scale:g}"

    def file(self, table: Table) -> Path:
        return self.folder / table.benchmark / f"{table.stored_as}.parquet"

    @property
    def is_there(self) -> bool:
        return all(self.file(table).exists() for table in TABLES.values())

    def make(self) -> None:
        """Generates what is missing."""
        if not self.is_there:
            generator.make(self.folder, self.scale, [f"{t.benchmark}:{t.stored_as}" for t in TABLES.values()])

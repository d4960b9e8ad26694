"""The generated tables and query texts of one scale, made on first use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from benchmarks import generator
from benchmarks.coverage.schema import BENCHMARKS, Benchmark, TableKeys

SPARK_TYPES = {"INTEGER": "int", "BIGINT": "bigint", "VARCHAR": "string", "DATE": "date", "DOUBLE": "double"}


@dataclass(frozen=True)
class TableData:
    """A generated table: its keys, its columns with Spark types, and the file with its rows."""

    keys: TableKeys
    columns: Mapping[str, str] = field(hash=False)
    file: Path

    @property
    def name(self) -> str:
        return self.keys.name


@dataclass(frozen=True)
class Query:
    """A text of the generator, DuckDB's SQL."""

    name: str
    benchmark: Benchmark
    text: str


class Data:
    def __init__(self, scale: float, folder: Path = generator.DEFAULT_FOLDER) -> None:
        self.scale = scale
        self.folder = folder / f"coverage-sf{scale:g}"

    def make(self) -> None:
        if not self.folder.exists():
            parts = [f"{b.name}:{part}" for b in BENCHMARKS for part in ("*", "queries")]
            generator.make(self.folder, self.scale, parts)

    def queries(self) -> list[Query]:
        found = []
        for benchmark in BENCHMARKS:
            texts = json.loads((self.folder / benchmark.name / "queries.json").read_text())
            found += [Query(f"{benchmark.letter}{int(n):02}", benchmark, text) for n, text in texts.items()]
        return found

    def tables(self, benchmark: Benchmark) -> dict[str, TableData]:
        folder = self.folder / benchmark.name
        return {keys.name: read_table(keys, folder / f"{keys.name}.parquet") for keys in benchmark.tables}


def read_table(keys: TableKeys, file: Path) -> TableData:
    with duckdb.connect(config={"threads": 1}) as database:
        described = database.execute(f"describe from '{file}'").fetchall()
    return TableData(keys, {row[0]: spark_type(row[1]) for row in described}, file)


def spark_type(name: str) -> str:
    """
    >>> spark_type("DECIMAL(7,2)"), spark_type("VARCHAR")
    ('decimal(7,2)', 'string')
    """
    return SPARK_TYPES.get(name) or name.lower()

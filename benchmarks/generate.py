"""Writes generated tables as parquet, and query texts as JSON.  Runs in the generator's own environment: only duckdb is
there.

python generate.py <folder> <scale factor> tpcds:store_sales tpch:lineitem …

``tpch:*`` is every table of a benchmark; ``tpch:queries`` are its query texts, by number, as ``tpch/queries.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

GENERATORS = {"tpcds": "dsdgen", "tpch": "dbgen"}
EVERY_TABLE, QUERIES = "*", "queries"


def generate(folder: Path, scale: float, wanted: list[tuple[str, str]]) -> None:
    for benchmark, generator in GENERATORS.items():
        parts = [part for b, part in wanted if b == benchmark]
        if not parts:
            continue
        target, scratch = folder / benchmark, folder / f"{benchmark}.duckdb"
        target.mkdir(parents=True, exist_ok=True)
        scratch.unlink(missing_ok=True)
        with duckdb.connect(str(scratch)) as database:
            database.execute(f"call {generator}(sf={scale})")
            for table in tables(database, parts):
                database.execute(f"copy {table} to '{target / table}.parquet' (format parquet)")
            if QUERIES in parts:
                texts = dict(database.execute(f"select query_nr, query from {benchmark}_queries()").fetchall())
                (target / f"{QUERIES}.json").write_text(json.dumps(texts))
        scratch.unlink()


def tables(database: duckdb.DuckDBPyConnection, parts: list[str]) -> list[str]:
    if EVERY_TABLE in parts:
        return [name for (name,) in database.execute("select table_name from duckdb_tables() order by 1").fetchall()]
    return [part for part in parts if part != QUERIES]


if __name__ == "__main__":
    generate(Path(sys.argv[1]), float(sys.argv[2]), [(a, b) for a, b in (w.split(":") for w in sys.argv[3:])])

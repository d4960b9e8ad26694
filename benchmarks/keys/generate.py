"""Writes the generated tables as parquet.  Runs in the generator's own environment: only duckdb is there.

python generate.py <folder> <scale factor> tpcds:store_sales tpch:lineitem …
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

GENERATORS = {"tpcds": "dsdgen", "tpch": "dbgen"}


def generate(folder: Path, scale: float, wanted: list[tuple[str, str]]) -> None:
    for benchmark, generator in GENERATORS.items():
        tables = [table for b, table in wanted if b == benchmark]
        if not tables:
            continue
        target, scratch = folder / benchmark, folder / f"{benchmark}.duckdb"
        target.mkdir(parents=True, exist_ok=True)
        scratch.unlink(missing_ok=True)
        with duckdb.connect(str(scratch)) as database:
            database.execute(f"call {generator}(sf={scale})")
            for table in tables:
                database.execute(f"copy {table} to '{target / table}.parquet' (format parquet)")
        scratch.unlink()


if __name__ == "__main__":
    generate(Path(sys.argv[1]), float(sys.argv[2]), [(a, b) for a, b in (w.split(":") for w in sys.argv[3:])])

"""Seconds to bring the same change into the same view: rebuilt as a dbt table, merged, by log; and what reading costs.

    python -m benchmarks.apply [rows ...]        default 10000 300000 2700000

One Spark session, real dbt runs, ways in rotated order, medians.  Every refresh is compared with the query.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "8g",
    "spark.jars.packages": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "8",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.ansi.enabled": "false",
    "spark.log.level": "ERROR",
}
WAYS = {"rebuild": ("table", "auto"), "merge": ("incremental_ivm", "merge"), "log": ("incremental_ivm", "log")}
QUERY = (
    "select f.id, f.item, f.amount, d.category, d.brand, f.day, f.quantity"
    " from {{ source('raw','fact') }} f join {{ source('raw','dim') }} d on f.item = d.id"
)
REPETITIONS = 3


class Bench:
    def __init__(self, rows: int) -> None:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        self.folder = Path(tempfile.mkdtemp(prefix="ivm_bench_"))
        self.spark: Any = builder.config("spark.sql.warehouse.dir", str(self.folder / "warehouse")).getOrCreate()
        self.rows = rows
        self.changes = 0
        self.schema = f"bench_{rows}"
        self._project()
        self._data()

    def sql(self, statement: str) -> list[Any]:
        found: list[Any] = self.spark.sql(statement).collect()
        return found

    def _project(self) -> None:
        output = {"type": "spark", "method": "session", "host": "NA", "schema": self.schema, "threads": 1}
        key = [{"name": "id", "constraints": [{"type": "primary_key"}]}]
        tables = [{"name": "fact", "columns": key}, {"name": "dim", "columns": key}]
        files: dict[str, Any] = {
            "dbt_project.yml": {"name": "bench", "version": "1.0.0", "profile": "bench",
                                "flags": {"send_anonymous_usage_stats": False}},
            "profiles.yml": {"bench": {"target": "dev", "outputs": {"dev": output}}},
            "models/sources.yml": {"version": 2, "sources": [{"name": "raw", "schema": self.schema, "tables": tables}]},
        }  # fmt: skip
        for name, content in files.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(yaml.safe_dump(content, sort_keys=False))
        for way, (materialized, apply) in WAYS.items():
            delta = ", file_format='delta'" if materialized == "table" else ""
            config = f"materialized='{materialized}', meta={{'ivm': {{'apply': '{apply}'}}}}{delta}"
            (self.folder / f"models/{way}.sql").write_text(f"{{{{ config({config}) }}}}\n{QUERY}")

    def _data(self) -> None:
        feed = "tblproperties (delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true)"
        self.sql(f"create database if not exists {self.schema}")
        self.sql(
            f"create table {self.schema}.fact using delta {feed} as select id, id * 7919 % 18000 as item,"
            f" cast(id * 31 % 100000 / 100 as decimal(9,2)) as amount, cast(id % 1800 as int) as day,"
            f" cast(id % 50 as int) as quantity from range({self.rows})"
        )
        self.sql(
            f"create table {self.schema}.dim using delta {feed} as select id, concat('category ', id % 40) as category,"
            " concat('brand ', id % 900) as brand from range(18000)"
        )

    def change(self, keys: int) -> None:
        """Mixed: a fifth inserted, a fifth deleted, the rest updated; keys all over the table."""
        self.changes += 1
        step, fact, n = max(1, self.rows // keys), f"{self.schema}.fact", self.changes
        self.sql(f"update {fact} set amount = amount + 1 where id % {step} = {n % step} and id % 5 < 3")
        self.sql(f"delete from {fact} where id % {step} = {n % step} and id % 5 = 3")
        self.sql(
            f"insert into {fact} select {self.rows * (n + 1)} + id, id % 18000, cast(1 as decimal(9,2)), 1, 1"
            f" from range({max(1, keys // 5)})"
        )

    def refresh(self, way: str) -> tuple[float, dict[str, Any]]:
        """Seconds of the model inside dbt, and its result."""
        from dbt.cli.main import dbtRunner

        at = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder), "--quiet"]
        outcome = dbtRunner().invoke(["run", "--select", way, *at])
        if not outcome.success:
            raise RuntimeError(f"dbt run --select {way} failed")
        (result,) = json.loads((self.folder / "target/run_results.json").read_text())["results"]
        return float(result["execution_time"]), result["adapter_response"].get("ivm") or {}

    def read(self, way: str) -> float:
        """Seconds to aggregate the whole view, best of three."""
        query = f"select category, sum(amount), count(*) from {self.schema}.{way} group by category"
        times = []
        for _ in range(3):
            start = time.perf_counter()
            self.sql(query)
            times.append(time.perf_counter() - start)
        return min(times)

    def assert_equal(self, way: str) -> None:
        """The view against the table that was rebuilt from the same sources, as bags."""
        columns = "id, item, amount, category, brand, day, quantity"
        left, right = (f"select {columns} from {self.schema}.{name}" for name in (way, "rebuild"))
        for one, other in ((left, right), (right, left)):
            if self.sql(f"select * from ({one} except all {other}) limit 1"):
                raise AssertionError(f"{way} differs from the query")


def measure(rows: int, keys: int) -> dict[str, Any]:
    bench = Bench(rows)
    for way in WAYS:
        bench.refresh(way)
    times: dict[str, list[float]] = defaultdict(list)
    for repetition in range(REPETITIONS + 1):
        bench.change(keys)
        ways = list(WAYS)
        for way in ways[repetition % 3 :] + ways[: repetition % 3]:
            seconds, ivm = bench.refresh(way)
            if repetition:  # the first one warms up
                times[way].append(seconds)
            if ivm and ivm["strategy"] != "incremental":
                raise AssertionError(f"{way} was {ivm['strategy']}: {ivm['reason']}")
        for way in ("merge", "log"):
            bench.assert_equal(way)
    reads = {way: bench.read(way) for way in WAYS}
    medians = {way: statistics.median(t) for way, t in times.items()}
    return {"rows": rows, "keys": keys, "seconds": medians, "read": reads}


def main(sizes: list[int]) -> None:
    print(
        f"{'rows':>10} {'keys':>7} | {'rebuild':>8} {'merge':>8} {'log':>8} | {'read plain':>10} {'by log':>8}",
        flush=True,
    )
    for rows in sizes:
        result = measure(rows, min(10_000, rows // 10))
        s, r = result["seconds"], result["read"]
        print(
            f"{rows:>10,} {result['keys']:>7,} | {s['rebuild']:>8.2f} {s['merge']:>8.2f} {s['log']:>8.2f} |"
            f" {r['rebuild']:>10.2f} {r['log']:>8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main([int(float(a)) for a in sys.argv[1:]] or [10_000, 300_000, 2_700_000])

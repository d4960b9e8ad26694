"""Models on Spark and Delta: each benchmark's tables in one schema, all rounds committed, and its models' storage.

Models read tables at a version, so every model goes through the same history from version to version.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from benchmarks.coverage.check import ERROR, Check, Checked, Comparison, Engine, Versions
from benchmarks.coverage.compare import Row
from benchmarks.coverage.data import Data, Query, TableData
from benchmarks.coverage.history import COMMITS_PER_ROUND, History
from benchmarks.coverage.limits import failure
from benchmarks.coverage.rewrite import model_of
from benchmarks.coverage.run import Prepared, Settings
from benchmarks.coverage.schema import BENCHMARKS, Benchmark
from benchmarks.coverage.steering import settled_columns, wanted_values
from benchmarks.session import spark_session
from dbt_ivm.refresh.keeping import Step, drop_statement
from dbt_ivm.refresh.plan import RefreshPlan
from dbt_ivm.render.query import sql_text

SCHEMA = "coverage_{}"
PROPERTIES = "tblproperties (delta.enableChangeDataFeed = true)"
#: Small tables: more tasks only cost time.
PARTITIONS = 2


class SparkChecks:
    """A session, and the sources of the chosen queries with their history."""

    def __init__(self, data: Data, queries: list[Query], settings: Settings) -> None:
        self.data = data
        self.queries = queries
        self.settings = settings
        self.folders = contextlib.ExitStack()
        self.versions: dict[str, list[Versions]] = {}

    def __enter__(self) -> SparkChecks:
        folder = Path(self.folders.enter_context(tempfile.TemporaryDirectory(prefix="ivm_coverage_")))
        self.spark = spark_session(folder / "warehouse")
        self.spark.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
        for benchmark in BENCHMARKS:
            chosen = [q for q in self.queries if q.benchmark == benchmark]
            if chosen:
                self.versions[benchmark.name] = self._commit_all(benchmark, chosen, folder / benchmark.name)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.spark.stop()
        self.folders.close()

    def _commit_all(self, benchmark: Benchmark, queries: list[Query], folder: Path) -> list[Versions]:
        """Loads the tables that the queries read and commits all rounds; the versions after each."""
        tables = self.data.tables(benchmark)
        models = [model_of(q.text, tables) for q in queries]
        used = {name: tables[name] for name in sorted({n for m in models for n in m.tables})}
        wanted = wanted_values([m.original for m in models], {c for t in used.values() for c in t.columns})
        schema = SCHEMA.format(benchmark.name)
        self.spark.sql(f"create database {schema}")
        folder.mkdir()
        with duckdb.connect(config={"threads": 1}) as database:
            settled = frozenset(c for m in models for c in settled_columns(m.original))
            history = History(database, used, self.settings.seed, wanted, settled)
            sources = Sources(self.spark, history, schema, folder)
            return sources.commit_all(self.settings.rounds)

    def check(self, prepared: Prepared, settings: Settings) -> Checked:
        benchmark, name = prepared.query.benchmark.name, prepared.query.name
        tables = {str(t.name) for t in prepared.tables}
        versions = [{n: v for n, v in pinned.items() if n in tables} for pinned in self.versions[benchmark]]
        engine = SparkEngine(self.spark, prepared.model.sql, versions)
        options = {"apply": settings.apply}
        check = Check(prepared.model.sql, prepared.tables, f"{SCHEMA.format(benchmark)}.{name}", engine, options)
        late = threading.Event()

        def stop() -> None:
            late.set()
            self.spark.sparkContext.cancelAllJobs()

        timer = threading.Timer(settings.limit, stop)
        timer.start()
        try:
            return check.run(settings.rounds)
        except Exception as error:
            return Checked(ERROR, f"timeout after {settings.limit:g} s") if late.is_set() else failure(error)
        finally:
            timer.cancel()


class Sources:
    """The Delta tables of one benchmark, moved along a history that DuckDB makes."""

    def __init__(self, spark: Any, history: History, schema: str, folder: Path) -> None:
        self.spark = spark
        self.history = history
        self.schema = schema
        self.folder = folder

    def commit_all(self, rounds: int) -> list[Versions]:
        self.history.load()
        for table in self.history.tables.values():
            rows = self._exported(table, f"SELECT * FROM {table.name}__v0", 0)
            columns = ", ".join(f"cast({c} as {t}) as {c}" for c, t in table.columns.items())
            self.spark.sql(f"create table {self._name(table)} using delta {PROPERTIES} as select {columns} from {rows}")
        versions = [self._versions()]
        for number in range(1, rounds + 1):
            last = self.history.change(number)
            for version in range(last - COMMITS_PER_ROUND + 1, last + 1):
                for table in self.history.tables.values():
                    self._commit(table, version)
            versions.append(self._versions())
        return versions

    def _commit(self, table: TableData, version: int) -> None:
        feed = f"_commit_version = {version} AND _change_type <> 'update_preimage'"
        rows = self._exported(table, f"SELECT * FROM {table.name}__changes WHERE {feed}", version)
        same = " and ".join(f"t.{k} = s.{k}" for k in table.keys.primary_key)
        values = {c: f"cast(s.{c} as {t})" for c, t in table.columns.items()}
        self.spark.sql(
            f"merge into {self._name(table)} t using {rows} s on {same}"
            " when matched and s._change_type = 'delete' then delete"
            f" when matched then update set {', '.join(f'{c} = {v}' for c, v in values.items())}"
            f" when not matched then insert ({', '.join(values)}) values ({', '.join(values.values())})"
        )

    def _exported(self, table: TableData, query: str, version: int) -> str:
        file = self.folder / f"{table.name}_{version}.parquet"
        self.history.connection.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet)")
        return f"parquet.`{file}`"

    def _name(self, table: TableData) -> str:
        return f"{self.schema}.{table.name}"

    def _versions(self) -> Versions:
        names = [self._name(table) for table in self.history.tables.values()]
        return {n: self.spark.sql(f"describe history {n} limit 1").collect()[0].version for n in names}


class SparkEngine(Engine):
    def __init__(self, spark: Any, sql: str, versions: Sequence[Versions]) -> None:
        self.spark = spark
        self.query = sqlglot.parse_one(sql, read="spark")
        self.versions = versions
        self.expected: dict[str, Counter[Row]] = {}

    def load(self) -> Versions:
        return self.versions[0]

    def change(self, number: int) -> Versions:
        return self.versions[number]

    def execute(self, step: Step, plan: RefreshPlan) -> Sequence[Mapping[str, Any]]:
        return [row.asDict() for row in self.spark.sql(step.sql).collect()]

    def forget(self, plan: RefreshPlan) -> None:
        for step in plan.steps:
            if step.name:
                self.spark.sql(drop_statement(step.name))

    def compare(self, facade: exp.Select, versions: Versions) -> Comparison:
        found, expected = self._rows(sql_text(facade)), self._expected(versions)
        return Comparison(found.total(), list((found - expected).elements()), list((expected - found).elements()))

    def moved(self, before: Versions, now: Versions) -> bool:
        return self._expected(before) != self._expected(now)

    def _expected(self, versions: Versions) -> Counter[Row]:
        query = at_versions(self.query, versions)
        if query not in self.expected:
            self.expected[query] = self._rows(query)
        return self.expected[query]

    def _rows(self, query: str) -> Counter[Row]:
        return Counter(tuple(row) for row in self.spark.sql(query).collect())


def at_versions(query: exp.Expr, versions: Versions) -> str:
    """
    >>> at_versions(sqlglot.parse_one("select x from db.t as a", read="spark"), {"db.t": 3})
    'SELECT x FROM db.t VERSION AS OF 3 AS a'
    """
    pinned = query.copy()
    for table in pinned.find_all(exp.Table):
        version = versions.get(f"{table.db}.{table.name}".lower())
        if version is not None:
            table.set("version", exp.Version(this="VERSION", kind="AS OF", expression=exp.Literal.number(version)))
    return pinned.sql(dialect="spark")

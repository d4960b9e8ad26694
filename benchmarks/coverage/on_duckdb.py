"""One model on DuckDB: planned Spark statements transpiled, as in the property tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot import exp

from benchmarks.coverage.check import Comparison, Engine, Versions
from benchmarks.coverage.compare import Row, unmatched
from benchmarks.coverage.history import History
from benchmarks.coverage.rewrite import Model
from dbt_ivm.refresh.keeping import Step
from dbt_ivm.refresh.plan import RefreshPlan
from tests.property.duck import Duck, local_name, to_duckdb

SCHEMA = "db"


class RewriteDiffers(Exception):
    """The model's text does not give the rows of the generator's query: a fault of this package, not of the planner."""


class DuckEngine(Engine):
    def __init__(self, duck: Duck, history: History, model: Model) -> None:
        self.duck = duck
        self.history = history
        self.model = model
        self.query = sqlglot.parse_one(model.sql, read="spark")

    def load(self) -> Versions:
        self.history.load()
        versions = self._versions(0)
        original = to_duckdb(self.model.original.copy(), _local(versions))
        rest = unmatched(*self._differences(original, self._query(versions)))
        if rest:
            raise RewriteDiffers(rest)
        return versions

    def change(self, number: int) -> Versions:
        return self._versions(self.history.change(number))

    def execute(self, step: Step, plan: RefreshPlan) -> Sequence[Mapping[str, Any]]:
        if step.is_look:
            return self.duck.dictionaries(to_duckdb(sqlglot.parse_one(step.sql, read="spark")))
        self.duck.run(step.sql)
        return []

    def forget(self, plan: RefreshPlan) -> None:
        """Temporary tables are replaced by the next refresh."""

    def compare(self, facade: exp.Select, versions: Versions) -> Comparison:
        too_many, missing = self._differences(to_duckdb(facade), self._query(versions))
        ((rows,),) = self.duck.rows("SELECT count(*) FROM left_rows")
        return Comparison(int(str(rows)), too_many, missing)

    def moved(self, before: Versions, now: Versions) -> bool:
        return any(self._differences(self._query(before), self._query(now)))

    def _query(self, versions: Versions) -> str:
        return to_duckdb(self.query.copy(), _local(versions))

    def _differences(self, left: str, right: str) -> tuple[list[Row], list[Row]]:
        self.duck.connection.execute(f"CREATE OR REPLACE TEMP TABLE left_rows AS {left}")
        self.duck.connection.execute(f"CREATE OR REPLACE TEMP TABLE right_rows AS {right}")
        both = ("FROM left_rows EXCEPT ALL FROM right_rows", "FROM right_rows EXCEPT ALL FROM left_rows")
        only_left, only_right = (self.duck.rows(query) for query in both)
        return only_left, only_right

    def _versions(self, version: int) -> Versions:
        return {f"{SCHEMA}.{name}": version for name in self.history.tables}


def _local(versions: Versions) -> dict[str, int]:
    return {local_name(name): version for name, version in versions.items()}

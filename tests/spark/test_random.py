"""A sample of the random histories, the same planned statements on real Spark and Delta with its real change feed.

DBT_IVM_SPARK_HISTORIES=50 DBT_IVM_SEED=3 pytest tests/spark/test_random.py
DBT_IVM_SPARK_ALL_SQL=300 pytest tests/spark/test_random.py -k all_sql       views over everything that has a rule
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from functools import partial
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from dbt_ivm.api import plan_view, table
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog
from dbt_ivm.optimizer import RULES
from dbt_ivm.refresh.keeping import Keeping, drop_statement
from dbt_ivm.refresh.plan import RefreshPlan
from dbt_ivm.refresh.run import run_steps
from dbt_ivm.refresh.view import compile_view
from dbt_ivm.render.query import sql_text
from tests.property.duck import Row
from tests.property.sources import Timeline
from tests.property.test_all_sql import all_sql_histories
from tests.property.test_histories import WAYS, History, histories
from tests.spark.session import spark_session

HISTORIES = int(os.environ.get("DBT_IVM_SPARK_HISTORIES", "8"))
ALL_SQL = int(os.environ.get("DBT_IVM_SPARK_ALL_SQL", "6"))
SEED = int(os.environ.get("DBT_IVM_SEED", "0"))
NUMBERS = itertools.count(1)


class DeltaRun:
    """One history in a schema of its own."""

    def __init__(self, history: History) -> None:
        self.spark = spark_session()
        self.schema = f"random_{next(NUMBERS)}"
        self.sql_text = history.sql.replace("db.", f"{self.schema}.")
        self.rules = RULES if history.rules_on else ()
        self.timelines = [Timeline(s) for s in history.sources]
        self.tables = [
            table(f"{self.schema}.{s.name}", s.columns, primary_key=list(s.columns)[: s.key]) for s in history.sources
        ]
        self.sql(f"create database {self.schema}")
        for timeline, rows in zip(self.timelines, history.initial, strict=True):
            columns = ", ".join(f"{n} {t}" for n, t in timeline.source.columns.items())
            name = f"{self.schema}.{timeline.source.name}"
            self.sql(f"create table {name} ({columns}) using delta tblproperties (delta.enableChangeDataFeed = true)")
            timeline.commit_first(rows)
            self.insert(timeline, timeline.rows)
        self.view = compile_view(self.sql_text, Catalog.of(self.tables), rules=self.rules)
        self.seq = 1

    def sql(self, statement: str) -> list[Any]:
        rows: list[Any] = self.spark.sql(statement).collect()
        return rows

    def insert(self, timeline: Timeline, rows: list[Row]) -> None:
        if rows:
            name, types = f"{self.schema}.{timeline.source.name}", list(timeline.source.columns.values())
            values = ", ".join(
                "(" + ", ".join(f"cast({_literal(v)} as {t})" for v, t in zip(row, types, strict=True)) + ")"
                for row in rows
            )
            self.sql(f"insert into {name} values {values}")

    def move(self, timeline: Timeline, before: list[Row]) -> None:
        """Bring the Delta table from the old rows to the timeline's, one commit for what left and one for what came."""
        gone = Counter(before) - Counter(timeline.rows)
        came = Counter(timeline.rows) - Counter(before)
        name, columns = f"{self.schema}.{timeline.source.name}", list(timeline.source.columns)
        for row in gone:
            alike = " and ".join(f"{c} <=> {_literal(v)}" for c, v in zip(columns, row, strict=True))
            self.sql(f"delete from {name} where {alike}")  # all copies; the ones that stay come back
            came[row] += Counter(before)[row] - gone[row]
        self.insert(timeline, list(came.elements()))

    def versions(self) -> dict[str, int]:
        names = [str(t.name) for t in self.tables]
        return {n: self.sql(f"describe history {n} limit 1")[0].version for n in names}

    def plan(self, changes: dict[str, tuple[int, int]], now: dict[str, int], keeping: Keeping) -> RefreshPlan:
        return plan_view(
            self.sql_text,
            self.tables,
            model=f"{self.schema}.model",
            changes=changes,
            versions=now,
            seq=self.seq,
            rules=self.rules,
            keeping=keeping,
        )

    def facade(self) -> list[Row]:
        select = self.view.facade_select(RelationName.parse(f"{self.schema}.model__ivm").table())
        return [tuple(r) for r in self.sql(sql_text(select))]

    def check(self) -> None:
        expected = [tuple(r) for r in self.sql(self.sql_text)]
        assert Counter(self.facade()) == Counter(expected), self.sql_text


def _literal(value: object) -> str:
    return "null" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


@seed(SEED)
@settings(
    max_examples=HISTORIES,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(histories())
def test_random_histories_on_delta(history: History) -> None:
    check_on_delta(history)


@seed(SEED)
@settings(
    max_examples=ALL_SQL,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(all_sql_histories(qualify=False))
def test_random_views_over_all_sql_on_delta(history: History) -> None:
    check_on_delta(history)


def check_on_delta(history: History) -> None:
    run = DeltaRun(history)
    pinned = run.versions()
    plan = plan_view(run.sql_text, run.tables, model=f"{run.schema}.model", versions=pinned, rules=run.rules)
    run.sql(plan.steps[0].sql)
    run.check()
    read = {str(t.name) for t in run.view.tables}
    for batch in history.batches[:2]:
        for number, operation in batch:
            before = list(run.timelines[number].rows)
            run.timelines[number].commit(operation)
            run.move(run.timelines[number], before)
        now = run.versions()
        changes = {n: (pinned[n], now[n]) for n in sorted(read) if now[n] > pinned[n]}
        plan_with = partial(run.plan, changes, now)
        plan = plan_with(Keeping())
        assert not changes or (plan.strategy == "incremental" and plan.way in WAYS)
        if plan.steps:
            run_steps(plan_with, Keeping(), lambda step, _: [r.asDict() for r in run.sql(step.sql)])
            for name in [step.name for step in plan.steps if step.name]:
                run.sql(drop_statement(name))
            run.seq += 1
        run.check()
        pinned = now

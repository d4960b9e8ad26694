"""The refresh protocol: statement budget, crashes at every statement, two runs at once, a writer in between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbt_ivm.bridge import engine
from tests.spark.project import Project


class Killed(RuntimeError):
    """Like the process going away: the refresh does not catch it, and no further statement of the model runs."""


@contextmanager
def watched(hook: Any) -> Iterator[list[str]]:
    """Record every statement of refreshes; ``hook(number, sql, when)`` may do something before or after it."""
    original, seen = engine.Engine.rows, []

    def rows(self: engine.Engine, sql: str) -> list[dict[str, Any]]:
        seen.append(sql)
        hook(len(seen), sql, "before")
        result = original(self, sql)
        hook(len(seen), sql, "after")
        return result

    engine.Engine.rows = rows  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        engine.Engine.rows = original  # type: ignore[method-assign]


def nothing(number: int, sql: str, when: str) -> None:
    return None


def prepared(project: Project) -> Project:
    key = [{"name": "id", "constraints": [{"type": "primary_key"}]}]
    project.source("orders", "id bigint, customer int, amount int", "(1,1,10),(2,2,5)", columns=key)
    project.source("customer", "id int, segment string", "(1,'a'),(2,'b')", columns=key)
    project.model(
        "m",
        "select o.id, o.amount, c.segment from {{ source('raw','orders') }} o"
        " join {{ source('raw','customer') }} c on o.customer = c.id",
    )
    return project


def change(project: Project, number: int) -> None:
    s = project.schema
    project.sql(f"insert into {s}.orders values ({100 + number}, 1, {number})")
    project.sql(f"update {s}.customer set segment = 'v{number}' where id = 2")


@contextmanager
def everything_sent() -> Iterator[list[str]]:
    """Every statement that reaches Spark through dbt, the materialization's and hooks' included."""
    from dbt.adapters.spark.session import Cursor

    original, seen = Cursor.execute, []

    def execute(self: Any, sql: str, *parameters: Any) -> None:
        text = re.sub(r"/\*.*?\*/", "", sql, count=1, flags=re.DOTALL).strip()
        if not text.lower().startswith(("show ", "create schema")):  # dbt fills its cache once per run
            seen.append(text)
        original(self, sql, *parameters)

    Cursor.execute = execute
    try:
        yield seen
    finally:
        Cursor.execute = original


def test_statement_budget(project: Project) -> None:
    p = prepared(project)
    p.run()
    change(p, 1)
    with everything_sent() as seen:
        result = p.run()["m"]
    sources = 2
    writes = [sql for sql in seen if not sql.startswith(("DESCRIBE", "SELECT"))]
    assert result["strategy"] == "incremental" and result["statements"] == len(seen), seen
    assert len(seen) <= 1 + 3 * sources + 1, seen
    assert len(writes) == 1 and writes[0].startswith("MERGE")
    with everything_sent() as seen:
        assert p.run()["m"]["strategy"] == "none"
    assert len(seen) <= 1 + 3 * sources
    assert all(sql.startswith(("DESCRIBE", "SELECT")) for sql in seen), seen


def test_killed_between_commit_and_facade(project: Project) -> None:
    """A new definition is committed and the process dies before the view is replaced: the next run replaces it."""
    p = prepared(project)
    p.run()
    p.model("m", "select o.id, o.amount + 1 as amount, 'x' as segment from {{ source('raw','orders') }} o")

    def kill(number: int, sql: str, when: str) -> None:
        if sql.startswith("DESCRIBE HISTORY") and "m__ivm" in sql and rebuilt:
            raise Killed("Killed")
        if sql.startswith("CREATE OR REPLACE") and when == "after":
            rebuilt.append(True)

    rebuilt: list[bool] = []
    with watched(kill):
        p.run(expect_success=False)
    assert p.run()["m"]["strategy"] == "none"
    p.assert_equal("m")


def test_killed_at_every_statement(project: Project) -> None:
    """Before the commit the old result stays, after it the new one is there; a rerun is right in both cases."""
    p = prepared(project)
    with watched(nothing) as seen:
        p.run()
    p.sql(f"drop view {p.schema}.m")
    p.sql(f"drop table {p.schema}.m__ivm")
    for number in range(1, len(seen) + 1):  # the first build
        with watched(killer(number)):
            assert "Killed" in p.run(expect_success=False)["m"]["message"]
    p.run()
    p.assert_equal("m")
    change(p, 0)
    with watched(nothing) as seen:
        p.run()
    for number in range(len(seen) - 1, len(seen) + 1):  # around the one write; earlier statements only read
        change(p, number)
        for when in ("before", "after"):
            with watched(killer(number, when)):
                p.run(expect_success=False)
        result = p.run()["m"]
        assert result["strategy"] in ("incremental", "none")
        p.assert_equal("m")


def killer(number: int, when: str = "before") -> Any:
    def kill(at: int, sql: str, moment: str) -> None:
        if at == number and moment == when:
            raise Killed(f"Killed at statement {number}: {sql[:60]}")

    return kill


def test_append_between_planning_and_reading(project: Project) -> None:
    """A row written after the versions were pinned is not half in the result; the next refresh brings it."""
    p = prepared(project)
    p.run()
    change(p, 1)

    def write(number: int, sql: str, when: str) -> None:
        if sql.startswith("MERGE") and when == "before":
            p.sql(f"insert into {p.schema}.orders values (500, 2, 500)")
            p.sql(f"delete from {p.schema}.customer where id = 1")

    with watched(write):
        result = p.run()["m"]
    assert result["strategy"] == "incremental"
    assert p.rows("m") == [(1, 10, "a"), (101, 1, "a"), (2, 5, "v1")]
    assert p.run()["m"]["strategy"] == "incremental"
    p.assert_equal("m")


def test_two_runs_at_once(project: Project) -> None:
    """The second of two refreshes from the same state aborts with nothing written, and says what to do."""
    p = prepared(project)
    p.run()
    change(p, 1)
    inner: dict[str, Any] = {}

    def run_another(number: int, sql: str, when: str) -> None:
        if sql.startswith("MERGE") and when == "before" and not inner:
            inner["started"] = True
            p.sql(sql)  # the other run commits the same refresh first

    with watched(run_another):
        failed = p.run(expect_success=False)["m"]
    assert "IVM_CONCURRENT" in failed["message"] and "Run the model again" in failed["message"]
    p.assert_equal("m")
    assert p.run()["m"]["strategy"] == "none"


def test_average_of_decimals_after_many_refreshes(project: Project) -> None:
    p, s = project, project.schema
    p.source("orders", "id int, g int, price decimal(10,2)", "(0,0,0.01),(1,1,99999999.99)")
    p.model("m", "select g, avg(price) as mean, sum(price) as total from {{ source('raw','orders') }} group by g")
    p.run()
    for number in range(3):
        p.sql(
            f"insert into {s}.orders select id + {10 + number * 100}, id % 3, cast(id * 1.37 + 0.{number}1 as decimal(10,2)) from range(50)"
        )
        p.sql(f"delete from {s}.orders where id % 7 = {number}")
        assert p.run()["m"]["strategy"] == "incremental"
        p.assert_equal("m")

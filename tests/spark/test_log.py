"""Refreshes by log on real Delta: readers, models downstream, compaction, changing between log and merge, crashes."""

from __future__ import annotations

import pytest

from dbt_ivm.refresh import compact
from tests.spark.project import Project
from tests.spark.test_protocol import Killed, change, killer, nothing, prepared, watched

LOG = {"ivm": {"apply": "log"}}
JOIN = (
    "select o.id, o.customer, o.amount, c.segment from {{ source('raw','orders') }} o"
    " join {{ source('raw','customer') }} c on o.customer = c.id"
)


def parts(project: Project, model: str = "m") -> dict[int, int]:
    """Stored rows by part: data, state, tombstones."""
    rows = project.sql(f"select __ivm_part, count(*) from {project.schema}.{model}__ivm group by 1")
    return {row[0]: row[1] for row in rows}


def test_models_downstream_follow_through_lag_and_compaction(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(project)
    project.model("m", JOIN, meta=LOG)
    project.model(
        "grouped", "select segment, sum(amount) as s, max(amount) as m from {{ ref('m') }} group by 1", meta=LOG
    )
    project.model("merged", "select id, segment from {{ ref('m') }} where amount > 3")
    names = ("m", "grouped", "merged")
    project.run()
    s = project.schema
    project.sql(f"update {s}.orders set amount = 7 where id = 2")
    change(project, 1)
    results = project.run()
    assert {n: (results[n]["strategy"], results[n]["way"]) for n in names} == {
        "m": ("incremental", "log by key"),
        "grouped": ("incremental", "log by group"),
        "merged": ("incremental", "merge by key"),
    }
    assert results["m"]["rows"] == {"inserted": 1, "updated": 1, "deleted": 0}
    assert parts(project) == {0: 4, 1: 2, 2: 1}
    for name in names:
        project.assert_equal(name)

    # the parent alone moves on: a key deleted and inserted again, then compaction
    project.sql(f"delete from {s}.orders where id = 2")
    project.run("--select", "m")
    project.sql(f"insert into {s}.orders values (2, 2, 9)")
    monkeypatch.setattr(compact, "MOST_REFRESHES", 1)
    results = project.run("--select", "m")
    monkeypatch.undo()
    assert results["m"]["way"] == "append, then compaction"
    assert parts(project) == {0: 3, 1: 1}
    project.assert_equal("m")
    results = project.run()
    assert {n: results[n]["strategy"] for n in names} == {
        "m": "none",
        "grouped": "incremental",
        "merged": "incremental",
    }
    for name in names:
        project.assert_equal(name)

    project.dbt("run-operation", "ivm_compact")
    assert {n: 2 in parts(project, n) for n in names} == dict.fromkeys(names, False)
    for name in names:
        project.assert_equal(name)

    # a rebuilt parent reaches its children as the true difference, tombstones of the old table included
    project.sql(f"update {s}.customer set segment = 'z' where id = 1")
    project.run("--select", "m")
    project.sql(f"update {s}.orders set amount = 1 where id = 2")
    project.run("--select", "m", "--full-refresh")
    results = project.run("--select", "grouped", "merged")
    assert {r["strategy"] for r in results.values()} == {"incremental"}
    for name in names:
        project.assert_equal(name)


def test_a_model_moves_between_merge_and_log_without_a_rebuild(project: Project) -> None:
    prepared(project)
    project.run()
    for number, (apply, way) in enumerate([("log", "log by key"), ("merge", "merge by key"), ("log", "log by key")]):
        project.model("m", JOIN.replace("o.customer, ", ""), meta={"ivm": {"apply": apply}})
        assert project.run()["m"]["strategy"] == "none"
        project.assert_equal("m")  # nothing changed, so nothing changed over: tombstones are still seen
        change(project, number)
        result = project.run()["m"]
        assert (result["strategy"], result["way"]) == ("incremental", way)
        project.assert_equal("m")
        assert (2 in parts(project)) == (apply == "log")


def test_a_run_that_comes_second_writes_nothing(project: Project) -> None:
    prepared(project)
    project.model("m", JOIN, meta=LOG)
    project.run()
    change(project, 1)

    def other_run(number: int, sql: str, when: str) -> None:
        if sql.startswith("INSERT") and when == "before":
            project.sql(sql.replace('"storage_version": ', '"storage_version": 9'))

    with watched(other_run):
        failed = project.run(expect_success=False)["m"]
    assert "IVM_CONCURRENT" in failed["message"] and "Run the model again" in failed["message"]
    assert parts(project)[1] == 2


@pytest.mark.parametrize(("apply", "statement"), [("log", "INSERT"), ("merge", "MERGE"), ("state only", "UPDATE")])
def test_another_build_of_the_same_number(project: Project, apply: str, statement: str) -> None:
    """A rebuild takes the next number, and so may a refresh that it did not see: the name of the build tells them apart."""
    prepared(project)
    project.model("m", JOIN, meta={"ivm": {"apply": apply}} if apply in ("log", "merge") else {})
    project.run()
    table = f"{project.schema}.m__ivm"
    if apply == "state only":
        project.sql(f"optimize {project.schema}.orders")
    else:
        change(project, 1)
    written: list[str] = []

    def rebuild(number: int, sql: str, when: str) -> None:
        if sql.startswith(statement) and when == "before" and not written:
            written.append(sql)
            other = """regexp_replace(__ivm_state, '"epoch": [0-9]+', '"epoch": 7')"""
            project.sql(f"update {table} set __ivm_state = {other} where __ivm_part = 1")

    before = project.rows("m")
    with watched(rebuild):
        failed = project.run(expect_success=False)["m"]
    assert written and "IVM_CONCURRENT" in failed["message"]
    assert project.rows("m") == before
    result = project.run()["m"]
    assert result["strategy"] == "full" and "somebody else wrote" in result["reason"]
    project.assert_equal("m")


def test_the_view_knows_tombstones_before_there_is_one(project: Project) -> None:
    """A rebuild moves a model to the log and dies before its view is replaced."""
    prepared(project)
    project.run()
    project.model("m", JOIN.replace("o.customer, ", ""), meta=LOG)

    def kill(number: int, sql: str, when: str) -> None:
        if sql.startswith("CREATE OR REPLACE") and when == "after":
            raise Killed("Killed")

    with watched(kill):
        project.run("--full-refresh", expect_success=False)
    change(project, 1)

    def compare(number: int, sql: str, when: str) -> None:
        if sql.startswith("INSERT") and when == "after":
            seen.append(parts(project).get(2, 0))
            project.assert_equal("m")

    seen: list[int] = []
    with watched(compare):
        assert project.run()["m"]["way"] == "log by key"
    assert seen == [1]
    project.assert_equal("m")


def test_two_states_of_one_number_are_rebuilt_at_once(project: Project) -> None:
    prepared(project)
    project.model("m", JOIN, meta=LOG)
    project.run()
    change(project, 1)

    def rebuilt_by_another(number: int, sql: str, when: str) -> None:
        if sql.startswith("INSERT") and when == "after":
            storage = f"{project.schema}.m__ivm"
            project.sql(f"insert into {storage} select * from {storage} where __ivm_seq = 2")

    with watched(rebuilt_by_another):
        result = project.run()["m"]
    assert result["strategy"] == "full" and "another run rebuilt" in result["reason"]
    project.assert_equal("m")
    assert parts(project)[1] == 1


def test_killed_at_every_statement_of_a_refresh_and_a_compaction(project: Project) -> None:
    """Dying before a statement is dying after the one before it."""
    prepared(project)
    project.model("m", JOIN, meta={"ivm": {"apply": "log", "compact_at": 0}})
    project.run()
    change(project, 0)
    project.run()
    change(project, 1)
    with watched(nothing) as usual:
        assert project.run()["m"]["way"] == "log by key, then compaction"
    kinds = [" ".join(sql.split()[:2]) for sql in usual]
    assert {"CACHE TABLE", "INSERT INTO", "INSERT OVERWRITE", "DROP VIEW"} <= set(kinds), kinds
    first = kinds.index("CACHE TABLE")  # the statements before it only read
    for number, kind in list(enumerate(kinds, 1))[first:]:
        change(project, 1 + number)
        with watched(killer(number)) as seen:
            assert "Killed" in project.run(expect_success=False)["m"]["message"]
        assert " ".join(seen[number - 1].split()[:2]) == kind, "another statement than usual"
        assert project.run()["m"]["strategy"] in ("incremental", "none")
        project.assert_equal("m")

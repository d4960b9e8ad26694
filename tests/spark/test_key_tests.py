"""dbt_ivm.primary_key, foreign_key and fk_guard under `dbt test` and `dbt build`: green, red, and red before the merge."""

from __future__ import annotations

from typing import Any

from tests.spark.project import Project


def verdicts(p: Project, *arguments: str, expect_success: bool) -> dict[str, Any]:
    results = p.dbt(*arguments, expect_success=expect_success)
    return {n: r for n, r in results.items() if r["unique_id"].startswith("test.")}


def one(results: dict[str, Any], part: str) -> str:
    (found,) = [r["status"] for n, r in results.items() if part in n]
    return str(found)


def test_keys_as_dbt_tests(project: Project) -> None:
    p, s = project, project.schema
    composite = {"columns": ["c", "d"], "to": "source('raw','parent')", "to_columns": ["a", "b"]}
    p.source("parent", "a int, b int, label string", "(1,1,'x'),(1,2,'y')",
             data_tests=[{"dbt_ivm.primary_key": {"columns": ["a", "b"]}}])  # fmt: skip
    p.source("child", "id int, c int, d int", "(1,1,1),(2,1,null),(3,null,7)",
             columns=[{"name": "id", "data_tests": ["dbt_ivm.primary_key"]}],
             data_tests=[{"dbt_ivm.foreign_key": composite}, {"dbt_ivm.fk_guard": composite}])  # fmt: skip
    p.model("joined", "select c.id, p.label from {{ source('raw','child') }} c "
                      "join {{ source('raw','parent') }} p on c.c = p.a and c.d = p.b")  # fmt: skip
    green = verdicts(p, "test", expect_success=True)
    assert len(green) == 4, "nothing built yet: nothing was consumed"
    assert {r["status"] for r in green.values()} == {"pass"}
    p.run()
    verdicts(p, "test", expect_success=True)

    # a referenced key goes and comes back: red before the merge, green after it
    p.sql(f"delete from {s}.parent where a = 1")
    p.sql(f"insert into {s}.parent values (1,1,'other'),(1,2,'another')")
    red = verdicts(p, "build", "--select", "source:raw.child+", expect_success=False)
    assert one(red, "fk_guard") == "fail" and one(red, "foreign_key") == "pass"
    guard = next(r for n, r in red.items() if "fk_guard" in n)
    assert guard["failures"] == 1, "only the key that a row references"
    p.run()
    p.assert_equal("joined")
    verdicts(p, "test", expect_success=True)

    # rows that leave and come back as they were, and new keys, do not trip it
    p.sql(f"delete from {s}.parent where b = 1")
    p.sql(f"insert into {s}.parent values (1,1,'other'),(5,5,'new')")
    verdicts(p, "test", expect_success=True)

    p.sql(f"insert into {s}.child values (4,9,9),(4,1,2),(null,1,1)")
    p.sql(f"insert into {s}.parent values (5,5,'twice')")
    red = verdicts(p, "test", expect_success=False)
    assert one(red, "foreign_key") == "fail" and one(red, "primary_key_raw_child") == "fail"
    assert one(red, "primary_key_raw_parent") == "fail" and one(red, "fk_guard") == "pass"
    failures = sorted(r["failures"] for r in red.values() if r["status"] == "fail")
    assert failures == [1, 1, 2], "the dangling row; the doubled pair; the doubled id and the NULL"


def test_arguments_as_of_relationships(project: Project) -> None:
    p, s = project, project.schema
    arguments = {"to": "ref('parents')", "field": "id"}
    p.source("people", "id int, name string", "(1,'ann')")
    p.source("orders", "id int, person int", "(1,1)")
    p.model("parents", "select id, count(*) as n from {{ source('raw','people') }} group by id")
    p.model(
        "child",
        "select o.id, o.person, p.n from {{ source('raw','orders') }} o join {{ ref('parents') }} p on o.person = p.id",
    )
    tests = [{f"dbt_ivm.{t}": {**arguments, "config": {"where": "person < 100"}}} for t in ("foreign_key", "fk_guard")]
    p.write("models/schema.yml", {"version": 2, "models": [
        {"name": "child", "columns": [{"name": "person", "data_tests": tests}]}]})  # fmt: skip
    results = p.dbt("build")
    assert {r["status"] for r in results.values()} == {"success", "pass"}
    p.sql(f"insert into {s}.people values (1,'again')")
    p.run("--select", "parents")  # the child has not consumed it yet
    red = verdicts(p, "test", expect_success=False)
    assert one(red, "fk_guard") == "fail" and one(red, "foreign_key") == "pass"
    wrong = {**arguments, "field": "nothing"}
    p.write("models/schema.yml", {"version": 2, "models": [
        {"name": "child", "columns": [{"name": "person", "data_tests": [{"dbt_ivm.fk_guard": wrong}]}]}]})  # fmt: skip
    (result,) = verdicts(p, "test", expect_success=False).values()
    assert "has no column 'nothing'" in result["message"]

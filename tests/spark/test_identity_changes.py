"""What a table, a view or a key stands for changes under a model: nothing stays stale, nothing is lost."""

from __future__ import annotations

import pytest

from tests.spark.project import Project
from tests.spark.test_log import LOG
from tests.spark.test_pruning import MERGE, looking

__all__ = ["looking"]

KEY = [{"name": "id", "constraints": [{"type": "primary_key"}]}]


def test_a_parent_by_log_loses_its_key(project: Project) -> None:
    """Its tombstones go with the rebuild; the child has counted them and must see them go."""
    p, s = project, project.schema
    p.source("sale", "id int, region string, amount int", "(1,'a',10),(2,'a',20),(3,'b',30)", columns=KEY)
    p.model("m", "select id, region, amount from {{ source('raw','sale') }}", meta=LOG)
    p.model("child", "select region, count(*) as n, sum(amount) as total from {{ ref('m') }} group by region")
    p.run()
    p.sql(f"update {s}.sale set amount = 11 where id = 1")
    p.sql(f"delete from {s}.sale where id = 3")
    assert p.run()["m"]["way"] == "log by key"
    p.sql(f"insert into {s}.sale values (2, 'c', 5)")
    assert "occurs more than once" in p.run("--select", "m")["m"]["reason"]
    assert p.run("--select", "child")["child"]["strategy"] == "incremental"
    p.assert_equal("m")
    p.assert_equal("child")


def test_without_one_broken_key_the_next_is_not_believed(project: Project) -> None:
    p, s = project, project.schema
    meta = {"ivm": {"primary_key": ["id"], "unique": [["code"]]}}
    p.source("sale", "id int, code string", "(1,'a'),(1,'a'),(2,'b')", meta=meta)
    p.model("m", "select id, code from {{ source('raw','sale') }}")
    reason = p.run()["m"]["reason"]
    assert "(id)" in reason and "(code)" in reason
    p.sql(f"insert into {s}.sale values (3, 'c')")
    p.sql(f"delete from {s}.sale where id = 2")
    assert p.run()["m"]["way"] == "merge by row"
    p.assert_equal("m")


@pytest.mark.usefixtures("looking")
def test_a_key_that_is_stored_in_a_partition_that_is_skipped(project: Project) -> None:
    p, s = project, project.schema
    rows = ", ".join(f"({i}, date'2024-01-0{1 + i % 4}', 'n{i}')" for i in range(8))
    p.source("sale", "id int, day date, note string", rows, columns=KEY)
    p.model("m", "select id, day, note from {{ source('raw','sale') }}", meta=MERGE, partition_by=["day"])
    p.run()
    p.sql(f"insert into {s}.sale values (5, date'2024-01-01', 'again')")  # stored under 2024-01-02
    p.sql(f"delete from {s}.sale where id = 4")  # so that rows are not only added
    assert "occurs more than once" in p.run()["m"]["reason"]
    p.assert_equal("m")
    p.sql(f"delete from {s}.sale where note = 'again'")
    p.sql(f"update {s}.sale set note = 'x' where id = 1")
    p.run()
    p.assert_equal("m")


def test_compaction_of_what_is_not_as_the_model_says(project: Project) -> None:
    """Neither with another key than the table's, nor over what somebody else wrote."""
    p, s = project, project.schema
    p.source("line", "id int, no int, amount int", "(1,1,10),(1,2,20),(2,1,30)",
             meta={"ivm": {"primary_key": ["id", "no"]}})  # fmt: skip
    p.model("m", "select id, no, amount from {{ source('raw','line') }}", meta=LOG)
    p.run()
    p.sql(f"update {s}.line set amount = 11 where no = 2")
    p.run()
    before = p.sql(f"describe history {s}.m__ivm limit 1")[0].version
    p.source("line", meta={"ivm": {"primary_key": ["id"]}})
    p.dbt("run-operation", "ivm_compact")
    assert p.sql(f"describe history {s}.m__ivm limit 1")[0].version == before
    p.source("line", meta={"ivm": {"primary_key": ["id", "no"]}})
    p.sql(f"delete from {s}.m__ivm where id = 2")
    p.dbt("run-operation", "ivm_compact")
    assert p.sql(f"describe history {s}.m__ivm limit 1")[0].version == before + 1
    result = p.run()["m"]
    assert result["strategy"] == "full" and "somebody else wrote" in result["reason"]
    p.assert_equal("m")


def test_columns_that_change_names(project: Project) -> None:
    p, s = project, project.schema
    p.source("sale", "id int, amount int, better int", "(1,10,100),(2,20,200)", columns=KEY)
    p.model("m", "select id, amount from {{ source('raw','sale') }}")
    p.run()
    p.sql(f"alter table {s}.sale set tblproperties ('delta.columnMapping.mode' = 'name')")
    assert p.run()["m"]["way"] == "state only"
    p.sql(f"alter table {s}.sale rename column amount to worse")
    p.sql(f"alter table {s}.sale rename column better to amount")
    result = p.run()["m"]
    assert result["strategy"] == "full" and "renamed" in result["reason"]
    p.assert_equal("m")


def test_views_below_a_model_without_a_plan(project: Project) -> None:
    p = project
    p.source("sale", "id int, amount int", "(1,10),(2,20)", columns=KEY)
    p.model("stage", "select id, amount from {{ source('raw','sale') }} where amount > 0", materialized="view")
    p.model("m", "select id, percent_rank() over (order by amount) as place from {{ ref('stage') }}")
    p.run()
    assert p.run()["m"]["strategy"] == "none"
    p.model("stage", "select id, amount from {{ source('raw','sale') }} where amount > 10", materialized="view")
    assert "definition" in p.run()["m"]["reason"]
    p.assert_equal("m")


def test_a_source_that_becomes_delta(project: Project) -> None:
    p, s = project, project.schema
    p.sql(f"create table {s}.seeded (id int, v int) using parquet")
    p.sql(f"insert into {s}.seeded values (1, 10)")
    p.source("seeded")
    p.model("m", "select id, v from {{ source('raw','seeded') }}")
    p.run()
    assert p.run()["m"]["strategy"] == "none"
    p.sql(f"drop table {s}.seeded")
    p.source("seeded", "id int, v int", "(2, 20)")
    result = p.run()["m"]
    assert result["strategy"] == "full" and "had no versions" in result["reason"]
    p.assert_equal("m")
    p.sql(f"insert into {s}.seeded values (3, 30)")
    assert p.run()["m"]["strategy"] == "incremental"
    p.assert_equal("m")


def test_a_table_of_the_user_is_not_replaced(project: Project) -> None:
    p, s = project, project.schema
    p.source("sale", "id int, amount int", "(1,10)", columns=KEY)
    p.sql(f"create table {s}.m__ivm using delta as select 7 as precious")
    p.model("m", "select id, amount from {{ source('raw','sale') }}")
    assert "IVM_NOT_OURS" in p.run(expect_success=False)["m"]["message"]
    assert [tuple(r) for r in p.sql(f"select * from {s}.m__ivm")] == [(7,)]

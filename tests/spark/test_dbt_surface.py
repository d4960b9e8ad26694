"""dbt's own features on an incremental_ivm model."""

from __future__ import annotations

import json

from tests.spark.project import Project

CONTRACT = {"contract": {"enforced": True}}


def test_configs_docs_contracts_and_commands(project: Project) -> None:
    p, s = project, project.schema
    p.source("orders", "id bigint, region string, amount int", "(1,'n',10),(2,'s',5)")
    p.sql(f"create table {s}.audit (what string) using delta")
    p.model(
        "regions",
        "select region, sum(amount) as total, count(*) as n from {{ source('raw','orders') }} group by region",
        partition_by=["region"],
        tblproperties={"team": "sales"},
        persist_docs={"relation": True, "columns": True},
        tags=["daily"],
        pre_hook=f"insert into {s}.audit values ('before')",
        post_hook=f"insert into {s}.audit values ('after')",
    )
    p.model("kept", "select id, amount from {{ source('raw','orders') }}", contract={"enforced": True})
    columns = [{"name": "region", "description": "where it's sold"}, {"name": "total", "description": "money"}]
    contract = [{"name": "id", "data_type": "bigint"}, {"name": "amount", "data_type": "int"}]
    unit = {
        "name": "adds_up", "model": "regions",
        "given": [{"input": "source('raw','orders')", "rows": [{"id": 1, "region": "x", "amount": 2}, {"id": 2, "region": "x", "amount": 3}]}],
        "expect": {"rows": [{"region": "x", "total": 5, "n": 2}]},
    }  # fmt: skip
    models = [
        {
            "name": "regions",
            "description": "Sales by region",
            "columns": columns,
            "data_tests": ["dbt_ivm.equals_recompute"],
        },
        {"name": "kept", "columns": contract},
    ]
    p.write("models/schema.yml", {"version": 2, "models": models, "unit_tests": [unit]})

    results = p.dbt("build")
    assert results["regions"]["strategy"] == "create" and results["adds_up"]["status"] == "pass"
    assert [r.what for r in p.sql(f"select what from {s}.audit")].count("after") == 1
    detail = p.sql(f"describe detail {s}.regions__ivm")[0]
    assert detail.partitionColumns == ["__ivm_part", "region"] and detail.properties["team"] == "sales"
    described = {r.col_name: (r.data_type, r.comment) for r in p.sql(f"describe table extended {s}.regions")}
    assert described["region"][1] == "where it's sold" and described["total"] == ("bigint", "money")
    assert described["Comment"][0] == "Sales by region"

    # new docs reach the facade without touching the data
    models[0]["description"] = "Sales per region"
    p.write("models/schema.yml", {"version": 2, "models": models, "unit_tests": [unit]})
    assert p.run()["regions"]["strategy"] == "none"
    assert {r.col_name: r.data_type for r in p.sql(f"describe table extended {s}.regions")}[
        "Comment"
    ] == "Sales per region"

    p.sql(f"insert into {s}.orders values (3,'e',1)")
    p.sql(f"update {s}.orders set region = 's' where id = 1")
    results = p.dbt("build", "--threads", "8", "--select", "tag:daily", "kept")
    assert results["regions"]["strategy"] == results["kept"]["strategy"] == "incremental"
    p.assert_equal("regions")
    p.assert_equal("kept")

    # commands that must simply work
    p.dbt("compile")
    p.dbt("ls")
    p.dbt("docs", "generate")
    catalog = json.loads((p.folder / "target" / "catalog.json").read_text())
    assert list(catalog["nodes"]["model.shop.regions"]["columns"]) == ["region", "total", "n"]

    # a broken contract is an error before anything is written
    contract[1]["data_type"] = "string"
    p.write("models/schema.yml", {"version": 2, "models": models})
    version = p.sql(f"describe history {s}.kept__ivm limit 1")[0].version
    failed = p.run("--select", "kept", "--full-refresh", expect_success=False)
    assert "contract" in failed["kept"]["message"].lower()
    assert p.sql(f"describe history {s}.kept__ivm limit 1")[0].version == version


def test_empty_runs_leave_state_alone(project: Project) -> None:
    p, s = project, project.schema
    p.source("orders", "id bigint", "(1)")
    p.model("m", "select id from {{ source('raw','orders') }}")
    assert p.run("--empty")["m"]["strategy"] == "create"
    assert p.rows("m") == []
    assert p.run()["m"]["strategy"] in ("create", "full")
    assert p.rows("m") == [(1,)]
    p.sql(f"insert into {s}.orders values (2)")
    assert p.run("--empty")["m"]["strategy"] == "none"
    result = p.run()["m"]
    assert result["strategy"] == "incremental" and result["message"] == "INCREMENTAL +1 ~0 -0 of 2"
    p.assert_equal("m")


def test_changing_the_materialization(project: Project) -> None:
    """table, view and back: the old relation is replaced only after the new storage holds the result."""
    p, s = project, project.schema
    p.source("orders", "id bigint, v int", "(1,1)")
    query = "select id, v from {{ source('raw','orders') }}"
    for before in ("table", "view"):
        p.model("m", query, materialized=before, file_format="delta")
        p.run("--full-refresh")
        p.model("m", query)
        assert p.run()["m"]["strategy"] in ("create", "incremental", "none")
        p.assert_equal("m")
        assert {r.col_name: r.data_type for r in p.sql(f"describe table extended {s}.m")}["Type"] == "VIEW"
        p.sql(f"insert into {s}.orders values (9,9)")
        assert p.run()["m"]["strategy"] == "incremental"
        p.assert_equal("m")
    # a model that fails to build keeps the old table
    p.model("n", query, materialized="table", file_format="delta")
    p.run("--select", "n")
    p.model("n", "select id, cast(raise_error('no') as int) as v from {{ source('raw','orders') }}")
    p.run("--select", "n", expect_success=False)
    assert len(p.rows("n")) == 3
    p.model("n", "select id, nothing from {{ source('raw','orders') }}")
    failed = p.run("--select", "n", expect_success=False)["n"]
    assert "nothing" in failed["message"] and len(p.rows("n")) == 3
    # a facade that somebody dropped comes back without a rebuild
    p.sql(f"drop view {s}.m")
    assert p.run("--select", "m")["m"]["strategy"] == "none"
    p.assert_equal("m")


def test_defer(project: Project) -> None:
    p, s = project, project.schema
    p.source("orders", "id bigint, v int", "(1,1)")
    p.model("parent", "select id, v from {{ source('raw','orders') }}")
    p.model("child", "select sum(v) as total from {{ ref('parent') }}")
    p.run()
    state = p.folder / "state"
    (p.folder / "target" / "manifest.json").rename(p.folder / "manifest.json")
    state.mkdir()
    (p.folder / "manifest.json").rename(state / "manifest.json")
    other = f"{s}_dev"
    p.sql(f"create database {other}")
    p.write("profiles.yml", {"shop": {"target": "dev", "outputs": {"dev": {
        "type": "spark", "method": "session", "host": "NA", "schema": other, "threads": 1}}}})  # fmt: skip
    result = p.run("--select", "child", "--defer", "--state", str(state))["child"]
    assert result["strategy"] == "create" and f"{s}.parent__ivm" in result["sources"]
    assert [tuple(r) for r in p.sql(f"select * from {other}.child")] == [(1,)]

"""Models on models, and every kind of parent: views to any depth, ephemeral, table, incremental, snapshot, seed."""

from __future__ import annotations

from tests.spark.project import Project


def test_models_on_models(project: Project) -> None:
    p, s = project, project.schema
    p.source("orders", "id bigint, customer int, amount int", "(1,1,10),(2,1,5),(3,2,7)")
    p.model("lines", "select id, customer, amount from {{ source('raw','orders') }} where amount > 0")
    p.model(
        "per_customer",
        "select customer, sum(amount) as total, count(*) as n from {{ ref('lines') }} group by 1 having sum(amount) > 6",
    )
    p.model("per_total", "select total, count(*) as customers from {{ ref('per_customer') }} group by 1")
    p.model(
        "pairs",
        "select a.customer, b.customer as other from {{ ref('per_customer') }} a join {{ ref('per_customer') }} b on a.total <= b.total",
    )
    names = ("lines", "per_customer", "per_total", "pairs")
    assert {r["strategy"] for r in p.run().values()} == {"create"}

    p.sql(f"insert into {s}.orders values (4,3,15),(5,1,-1)")
    p.sql(f"delete from {s}.orders where id = 2")
    p.sql(f"update {s}.orders set amount = 1 where id = 3")
    results = p.run()
    assert {n: r["strategy"] for n, r in results.items()} == dict.fromkeys(names, "incremental")
    for name in names:
        p.assert_equal(name)
    key = [source for source in results["pairs"]["sources"] if source.endswith("per_customer__ivm")]
    assert key, "a child reads its parent's storage table"
    assert results["pairs"]["way"] == "merge by key", "the parent's groups are a proven key"

    # a full rebuild upstream reaches downstream as the true difference
    p.sql(f"insert into {s}.orders values (6,4,100)")
    p.run("--select", "lines", "--full-refresh")
    results = p.run("--select", "per_customer", "per_total", "pairs")
    assert {r["strategy"] for r in results.values()} == {"incremental"}
    assert results["per_customer"]["rows"] == {"inserted": 1, "updated": 0, "deleted": 0}
    for name in names:
        p.assert_equal(name)
    results = p.run("--threads", "8")
    assert {r["strategy"] for r in results.values()} == {"none"}


def test_every_kind_of_parent(project: Project) -> None:
    p, s = project, project.schema
    feed = {"delta.enableChangeDataFeed": "true"}
    p.source("orders", "id bigint, customer int, amount int", "(1,1,10),(2,1,5)")
    p.sql(f"create view {s}.catalog_view as select id as order_id, amount from {s}.orders where amount > 1")
    p.source("catalog_view")
    p.write("seeds/names.csv", "customer,name\n1,ann\n2,bob\n")
    p.write("seeds/delta_names.csv", "customer,name\n1,ann\n2,bob\n")
    p.write("dbt_project.yml", {
        "name": "shop", "version": "1.0.0", "config-version": 2, "profile": "shop",
        "seeds": {"shop": {"delta_names": {"+file_format": "delta"}, "names": {"+file_format": "parquet"}}},
    })  # fmt: skip
    p.write("snapshots/snap.sql", "{% snapshot snap %}{{ config(target_schema='" + s + "', unique_key='id', strategy='check', check_cols=['amount'], file_format='delta') }}"
            "select id, amount from {{ source('raw','orders') }}{% endsnapshot %}")  # fmt: skip
    p.model("stg_orders", "select id, customer, amount from {{ source('raw','orders') }}", materialized="view")
    p.model(
        "stg_more",
        "select o.id, o.customer, o.amount * 2 as doubled from {{ ref('stg_orders') }} o",
        materialized="view",
    )
    p.model(
        "eph",
        "select customer, sum(amount) as total from {{ ref('stg_orders') }} group by customer",
        materialized="ephemeral",
    )
    p.model(
        "as_table",
        "select id, customer from {{ source('raw','orders') }}",
        materialized="table",
        file_format="delta",
        tblproperties=feed,
    )
    p.model("as_incremental", "select id, amount from {{ source('raw','orders') }}", materialized="incremental",
            file_format="delta", incremental_strategy="merge", unique_key="id", tblproperties=feed)  # fmt: skip
    children = {
        "from_view": "select customer, sum(doubled) as d from {{ ref('stg_more') }} group by 1",
        "from_catalog_view": "select order_id, amount from {{ source('raw','catalog_view') }}",
        "from_ephemeral": "select e.customer, e.total from {{ ref('eph') }} e where e.total > 0",
        "from_table": "select customer, count(*) as n from {{ ref('as_table') }} group by 1",
        "from_incremental": "select sum(amount) as total from {{ ref('as_incremental') }}",
        "from_snapshot": "select id, amount from {{ ref('snap') }} where dbt_valid_to is null",
        "from_parquet": "select o.id, n.name from {{ source('raw','orders') }} o join {{ ref('names') }} n on o.customer = n.customer",
    }
    for name, query in children.items():
        p.model(name, query)
    p.dbt("build")
    for table in ("snap",):
        p.sql(f"alter table {s}.{table} set tblproperties (delta.enableChangeDataFeed = true)")
    p.sql(f"insert into {s}.orders values (3,2,30)")
    p.sql(f"update {s}.orders set amount = 6 where id = 2")
    results = p.dbt("build", "--exclude", "names")
    strategies = {n: results[n]["strategy"] for n in children}
    assert strategies == dict.fromkeys(children, "incremental"), {n: results[n]["message"] for n in children}
    for name in children:
        p.assert_equal(name)

    # the text of a parent view is part of the definition; a changed parquet table is full with that reason
    p.model(
        "stg_more",
        "select o.id, o.customer, o.amount * 3 as doubled from {{ ref('stg_orders') }} o",
        materialized="view",
    )
    p.write("seeds/names.csv", "customer,name\n1,anna\n2,bob\n")
    results = p.dbt("build", "--select", "stg_more", "names", "from_view", "from_parquet", "from_table")
    assert results["from_view"]["strategy"] == "full" and "definition" in results["from_view"]["reason"]
    assert results["from_parquet"]["strategy"] == "full" and "without versions" in results["from_parquet"]["reason"]
    assert results["from_table"]["strategy"] == "none"
    for name in ("from_view", "from_parquet"):
        p.assert_equal(name)

"""Every supported operator through real dbt on real Delta: three rounds of conflicting changes, always incremental,
always equal to recomputation.  The models include the named failures of hand-written incremental models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.project import Project

ORDERS, CUSTOMER, EVENTS = (
    "{{ source('raw','orders') }}",
    "{{ source('raw','customer') }}",
    "{{ source('raw','events') }}",
)

#: name -> (query, way of the mixed refresh)
MODELS: dict[str, tuple[str, str]] = {
    "keyed_join": (
        f"select o.id, o.amount, c.segment from {ORDERS} o join {CUSTOMER} c on o.customer_id = c.id where o.amount > 0",
        "merge by key",
    ),
    "hidden_key": (
        f"select c.segment, o.amount from {ORDERS} o, {CUSTOMER} c where o.customer_id = c.id",
        "merge by key",
    ),
    "bag": (f"select kind, value from {EVENTS}", "merge by row"),
    "payload": (
        f"select id, info, tags, happened, day, flag, info.city as city from {EVENTS} where kind is not null",
        "merge by row",
    ),
    "sums": (
        f"select c.segment, sum(o.amount) as revenue, avg(o.amount) as mean, count(*) as n, count(o.amount) as filled,"
        f" avg(o.id) as mean_id, sum(o.amount) filter (where o.amount > 5) as big"
        f" from {ORDERS} o join {CUSTOMER} c on o.customer_id = c.id group by c.segment having count(*) > 0",
        "merge by group",
    ),
    "extremes": (
        f"select customer_id, min(amount) as low, max(amount) as high, max(placed) as latest from {ORDERS} group by 1",
        "merge by group",
    ),
    "totals": (f"select count(*) as n, sum(amount) as total, min(amount) as low from {ORDERS}", "merge by group"),
    "holistic": (
        f"select customer_id, count(distinct amount) as kinds, sum(cast(amount as double)) as total from {ORDERS} group by 1",
        "merge recomputed groups",
    ),
    "expression_key": (
        f"select coalesce(segment, 'none') as s, year(placed) as y, count(*) as n from {ORDERS} o"
        f" join {CUSTOMER} c on o.customer_id = c.id group by 1, 2",
        "merge by group",
    ),
    "distinct_rows": (f"select distinct kind from {EVENTS}", "merge by group"),
    "union_rows": (
        f"select id, 'order' as what from {ORDERS} union all select id, kind from {EVENTS}",
        "merge by row",
    ),
    "self_join": (
        f"select a.id as first_id, b.id as second_id from {ORDERS} a join {ORDERS} b"
        " on a.customer_id = b.customer_id and a.id < b.id",
        "merge by key",
    ),
    "nested": (
        f"with per_customer as (select customer_id, sum(amount) as total from {ORDERS} group by customer_id)"
        f" select c.segment, count(*) as customers, max(p.total) as best from per_customer p"
        f" join {CUSTOMER} c on p.customer_id = c.id group by c.segment",
        "merge by group",
    ),
}


for merged in ("keyed_join", "extremes", "holistic"):  # the same views with tombstones
    MODELS[f"logged_{merged}"] = (MODELS[merged][0], MODELS[merged][1].replace("merge", "log"))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(Path(tmp_path_factory.mktemp("operators")))
    key = [{"name": "id", "constraints": [{"type": "primary_key"}]}]
    project.source(
        "orders",
        "id bigint, customer_id bigint, amount decimal(12,2), placed date",
        "(1,1,10.00,date'2024-01-01'),(2,1,5.25,date'2024-02-01'),(3,2,7.00,date'2023-03-01'),"
        "(4,null,1.00,date'2024-01-01'),(5,2,null,null),(6,9,3.00,date'2024-01-01')",
        columns=key,
    )
    project.source("customer", "id bigint, segment string", "(1,'a'),(2,'b'),(3,null)", columns=key)
    project.source(
        "events",
        "id int, kind string, value double, info struct<city:string,zip:int>, tags array<string>, happened timestamp,"
        " day date, flag boolean",
        "(1,'x',1.5,named_struct('city','A','zip',1),array('p','q'),timestamp'2024-01-01 10:00:00',date'2024-01-01',true),"
        "(1,'x',1.5,named_struct('city','A','zip',1),array('p','q'),timestamp'2024-01-01 10:00:00',date'2024-01-01',true),"
        "(2,null,null,null,null,null,null,null),(3,'y',double('NaN'),named_struct('city',null,'zip',2),array(),null,null,false)",
    )
    for name, (query, _) in MODELS.items():
        project.model(name, query, meta={"ivm": {"apply": "log" if name.startswith("logged_") else "auto"}})
    yield project


def check(shop: Project, results: dict[str, dict[str, object]], strategy: str) -> None:
    assert {n: r["strategy"] for n, r in results.items()} == dict.fromkeys(MODELS, strategy)
    for name in MODELS:
        shop.assert_equal(name)


def test_first_build(shop: Project) -> None:
    results = shop.run()
    check(shop, results, "create")
    assert results["totals"]["message"] == "CREATE 1 rows"


def test_mixed_changes_of_every_table(shop: Project) -> None:
    """Both join sides at once, a join key updated, one of two equal rows deleted, the current MIN deleted, a key
    deleted and re-inserted, NULL keys, several conflicting statements."""
    s = shop.schema
    shop.sql(f"insert into {s}.orders values (7,3,2.00,date'2022-01-01'),(8,null,null,null),(10,1,5.25,null)")
    shop.sql(f"update {s}.orders set customer_id = 2 where id = 1")
    shop.sql(f"delete from {s}.orders where id in (2, 3)")
    shop.sql(f"insert into {s}.orders values (3,1,8.00,date'2024-05-05')")
    shop.sql(f"update {s}.orders set amount = amount + 1 where id = 7")
    shop.sql(f"update {s}.customer set segment = 'c' where id = 2")
    shop.sql(f"insert into {s}.customer values (9,'z'),(10,'b')")
    shop.sql(f"delete from {s}.customer where id = 10")
    # exactly one of the two equal rows goes: delete both, insert one
    shop.sql(f"delete from {s}.events where id = 1")
    shop.sql(
        f"insert into {s}.events values (1,'x',1.5,named_struct('city','A','zip',1),array('p','q'),"
        "timestamp'2024-01-01 10:00:00',date'2024-01-01',true),(4,null,0.0,null,array(null),null,null,null)"
    )
    results = shop.run()
    check(shop, results, "incremental")
    assert {n: results[n]["way"] for n in MODELS} == {n: way for n, (_, way) in MODELS.items()}
    assert results["bag"]["rows"] == {"inserted": 1, "updated": 0, "deleted": 1}
    assert results["keyed_join"]["sources"][f"{s}.customer"]["updated"] == 1


def test_only_inserts_are_appended(shop: Project) -> None:
    s = shop.schema
    shop.sql(f"insert into {s}.orders values (20,1,1.00,date'2024-01-01'),(21,2,2.00,null)")
    shop.sql(f"insert into {s}.events values (1,'x',1.5,null,null,null,null,null),(1,'x',1.5,null,null,null,null,null)")
    results = shop.run()
    check(shop, results, "incremental")
    appended = {n for n, r in results.items() if r["way"] == "append"}
    assert appended == {"keyed_join", "logged_keyed_join", "hidden_key", "bag", "payload", "union_rows", "self_join"}
    assert results["bag"]["rows"] == {"inserted": 2, "updated": 0, "deleted": 0}


def test_updates_of_unused_columns_write_no_data(shop: Project) -> None:
    shop.sql(f"update {shop.schema}.orders set placed = date'2030-01-01' where id = 20")
    results = shop.run("--select", "keyed_join", "totals", "bag")
    assert {n: (r["strategy"], tuple(r["rows"].values())) for n, r in results.items()} == {
        "keyed_join": ("incremental", (0, 0, 0)),
        "totals": ("incremental", (0, 0, 0)),
        "bag": ("none", (0, 0, 0)),
    }


def test_delete_everything(shop: Project) -> None:
    for table in ("orders", "customer", "events"):
        shop.sql(f"delete from {shop.schema}.{table}")
    check(shop, shop.run(), "incremental")
    assert shop.rows("totals") == [(0, None, None)]


def test_nothing_changed_writes_nothing(shop: Project) -> None:
    versions = {n: shop.sql(f"describe history {shop.schema}.{n}__ivm limit 1")[0].version for n in MODELS}
    check(shop, shop.run(), "none")
    assert versions == {n: shop.sql(f"describe history {shop.schema}.{n}__ivm limit 1")[0].version for n in MODELS}

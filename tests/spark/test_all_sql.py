"""Outer joins, subqueries, windows, set operations, grouping sets and generators through real dbt on real Delta: rounds
of conflicting changes in every table, always incremental, always equal to recomputation.

DBT_IVM_SPARK_EVERY_MODEL=1 pytest tests/spark/test_all_sql.py       all of MODELS, not only one of each kind
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date, timedelta
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
    "left_join": (
        f"select o.id, o.amount, coalesce(c.segment, 'none') as segment, c.id is null as is_lost from {ORDERS} o"
        f" left join {CUSTOMER} c on o.customer_id = c.id",
        "merge by key",
    ),
    "right_join_residual": (
        f"select c.id, o.id as order_id from {ORDERS} o right join {CUSTOMER} c on o.customer_id = c.id and o.amount > 5",
        "merge by key",
    ),
    "full_join": (
        f"select o.id, c.id as customer, c.segment from {ORDERS} o full join {CUSTOMER} c on o.customer_id = c.id",
        "merge by key",
    ),
    "outer_joins_in_a_chain": (
        f"select a.id, b.segment, e.kind from {ORDERS} a left join {CUSTOMER} b on a.customer_id = b.id"
        f" left join {EVENTS} e on e.id = b.id and e.flag",
        "merge by row",
    ),
    "outer_join_without_equality": (
        f"select c.id, count(o.id) as later from {CUSTOMER} c left join {ORDERS} o on o.id > c.id group by c.id",
        "merge by group",
    ),
    "semi_and_anti_joins": (
        f"select o.id from {ORDERS} o left semi join {CUSTOMER} c on o.customer_id = c.id"
        f" left anti join {EVENTS} e on e.id = o.id",
        "merge by key",
    ),
    "exists_correlated": (
        f"select c.id, c.segment from {CUSTOMER} c where exists (select 1 from {ORDERS} o where o.customer_id = c.id"
        f" and o.amount > 4) and not exists (select 1 from {EVENTS} e where e.id = c.id and e.kind <> c.segment)",
        "merge by key",
    ),
    "not_in_with_nulls": (
        f"select id from {EVENTS} where id not in (select customer_id from {ORDERS})",
        "merge by row",
    ),
    "in_under_or_and_case": (
        f"select id, case when customer_id in (select id from {CUSTOMER}) then 'known' else 'new' end as kind"
        f" from {ORDERS} where amount > 6 or id in (select id from {EVENTS})",
        "merge by key",
    ),
    "scalar_subqueries": (
        f"select c.id, (select max(o.amount) from {ORDERS} o where o.customer_id = c.id) as best,"
        f" (select count(*) from {ORDERS} o where o.id < c.id) as before, (select sum(id) from {EVENTS}) as total"
        f" from {CUSTOMER} c",
        "merge by key",
    ),
    "lists_over_no_rows": (
        f"select c.id, (select sort_array(collect_list(o.amount)) from {ORDERS} o where o.customer_id = c.id) as amounts,"
        f" (select size(collect_set(e.kind)) from {EVENTS} e where e.id = c.id) as kinds from {CUSTOMER} c",
        "merge by key",
    ),
    "above_average": (
        f"select customer_id, sum(amount) as total from {ORDERS} group by customer_id"
        f" having sum(amount) >= (select avg(amount) from {ORDERS})",
        "merge by key",
    ),
    "latest_per_customer": (
        f"select id, customer_id, amount from (select *, row_number() over (partition by customer_id order by placed desc)"
        f" as place from {ORDERS}) where place = 1",
        "merge by key",
    ),
    "windows": (
        f"select id, rank() over (partition by customer_id order by placed) as place, sum(amount) over (partition by"
        f" customer_id order by id rows between 1 preceding and current row) as pair, lag(amount) over w as former,"
        f" count(*) over (partition by year(placed)) as in_year from {ORDERS} window w as (partition by customer_id order by id)",
        "merge by key",
    ),
    "window_over_groups": (
        f"select customer_id, placed, sum(sum(amount)) over (partition by customer_id order by placed) as running"
        f" from {ORDERS} group by customer_id, placed",
        "merge by key",
    ),
    "orders_over_everything": (
        f"select id, sum(amount) over (order by placed desc, id) as running, rank() over (order by amount desc nulls first)"
        f" as place, lag(amount) over (order by id) as former, lead(placed) over (order by id) as next,"
        f" count(amount) over (order by placed range between interval 40 days preceding and current row) as lately"
        f" from {ORDERS}",
        "merge by key",
    ),
    "values_of_the_frame": (
        f"select id, last_value(amount) over w as latest, first_value(amount) ignore nulls over w as earliest,"
        f" nth_value(id, 2) over w as other, collect_list(id) over w as ids, max_by(id, amount) over w as best"
        f" from {ORDERS} window w as (partition by customer_id order by placed)",
        "merge by key",
    ),
    "shares_of_everything": (
        f"select customer_id, sum(amount) / sum(sum(amount)) over () as share, dense_rank() over (order by sum(amount) desc)"
        f" as place, ntile(2) over (order by customer_id) as half from {ORDERS} group by customer_id",
        "merge by key",
    ),
    "largest_orders": (f"select id, customer_id from {ORDERS} order by amount desc, id limit 3", "merge by key"),
    "second_event": (
        f"select kind, flag from {EVENTS} order by id nulls last, kind, flag limit 1 offset 1",
        "merge by key",
    ),
    "limits_inside": (
        f"with latest as (select id, customer_id from {ORDERS} order by placed desc, id limit 4) select l.id, c.segment,"
        f" (select max(e.id) from (select id from {EVENTS} order by id limit 3) e) as most from latest l"
        f" left join {CUSTOMER} c on c.id = l.customer_id where l.id in (select id from {ORDERS} order by id desc limit 6)",
        "merge by key",
    ),
    "first_two_of_a_kind": (
        f"select kind, id from (select kind, id, row_number() over (partition by kind order by id) as n from {EVENTS})"
        f" where n <= 2",
        "merge by key",
    ),
    "intersect_ids": (f"select id from {EVENTS} intersect select id from {ORDERS}", "merge by key"),
    "except_ids": (f"select customer_id as id from {ORDERS} except select id from {CUSTOMER}", "merge by key"),
    "except_all": (f"select id from {EVENTS} except all select cast(customer_id as int) from {ORDERS}", "merge by row"),
    "intersect_all": (f"select id from {EVENTS} intersect all select cast(id as int) from {CUSTOMER}", "merge by row"),
    "rollup_sums": (
        f"select c.segment, year(o.placed) as y, sum(o.amount) as total, grouping(c.segment) as g, grouping_id() as gid"
        f" from {ORDERS} o join {CUSTOMER} c on o.customer_id = c.id group by rollup (c.segment, year(o.placed))",
        "merge by group",
    ),
    "cube_counts": (
        f"select kind, flag, count(*) as n, max(id) as most from {EVENTS} group by cube (kind, flag)",
        "merge by group",
    ),
    "exploded": (f"select id, tag from {EVENTS} lateral view outer explode(tags) t as tag", "merge by row"),
    "with_position": (
        f"select id, p, tag from {EVENTS} lateral view posexplode(tags) t as p, tag where tag <> 'q'",
        "merge by row",
    ),
    "explode_in_select": (f"select id, explode(sequence(1, id)) as n from {CUSTOMER} where id < 4", "merge by row"),
    "inline_table": (
        f"select v.label, count(o.id) as n from (values ('small', 0, 5), ('large', 5, 1000)) as v(label, low, high)"
        f" left join {ORDERS} o on o.amount >= v.low and o.amount < v.high group by v.label",
        "merge by group",
    ),
    "lists": (
        f"select customer_id, sort_array(collect_list(amount)) as amounts, max_by(id, amount) as best, first(placed) is null"
        f" as undated, count(distinct placed) as days from {ORDERS} where amount is distinct from 5.25 group by customer_id",
        "merge recomputed groups",
    ),
    "grouped_twice": (
        f"select n, count(*) as customers from (select c.id, count(o.id) as n from {CUSTOMER} c left join {ORDERS} o"
        f" on o.customer_id = c.id group by c.id) group by n",
        "merge by group",
    ),
}

for merged in ("left_join", "latest_per_customer", "full_join", "largest_orders"):  # the same views with tombstones
    MODELS[f"logged_{merged}"] = (MODELS[merged][0], MODELS[merged][1].replace("merge", "log"))

#: Variations of models that are there already; the random views and DuckDB cover them, too.
VARIATIONS = (
    "right_join_residual outer_join_without_equality semi_and_anti_joins above_average window_over_groups intersect_ids"
    " except_all cube_counts with_position explode_in_select grouped_twice logged_latest_per_customer logged_full_join"
    " logged_largest_orders second_event"
)
if not os.environ.get("DBT_IVM_SPARK_EVERY_MODEL"):
    MODELS = {name: model for name, model in MODELS.items() if name not in VARIATIONS.split()}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(Path(tmp_path_factory.mktemp("all_sql")))
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
        "id int, kind string, tags array<string>, flag boolean",
        "(1,'x',array('p','q'),true),(1,'x',array('p','q'),true),(2,null,null,null),(3,'y',array(),false),(7,'x',array('q'),true)",
    )
    for name, (query, _) in MODELS.items():
        apply = "log" if name.startswith("logged_") else "auto"
        project.model(name, query, meta={"ivm": {"apply": apply, "refresh": "strict"}})
    yield project


def check(shop: Project, results: dict[str, dict[str, object]], strategy: str) -> None:
    assert {n: r["strategy"] for n, r in results.items()} == dict.fromkeys(MODELS, strategy)
    for name in MODELS:
        shop.assert_equal(name)


def test_first_build(shop: Project) -> None:
    check(shop, shop.run(), "create")


def test_mixed_changes_of_every_table(shop: Project) -> None:
    s = shop.schema
    shop.sql(f"insert into {s}.orders values (7,3,2.00,date'2022-01-01'),(8,null,null,null),(10,1,5.25,null)")
    shop.sql(f"update {s}.orders set customer_id = 2 where id = 1")
    shop.sql(f"delete from {s}.orders where id in (2, 3)")
    shop.sql(f"insert into {s}.orders values (3,1,8.00,date'2024-05-05')")
    shop.sql(f"update {s}.customer set segment = 'c' where id = 2")
    shop.sql(f"insert into {s}.customer values (9,'z'),(10,'b')")
    shop.sql(f"delete from {s}.customer where id = 1")
    shop.sql(f"delete from {s}.events where id = 1")
    shop.sql(f"insert into {s}.events values (1,'x',array('p','r'),true),(9,'z',array(null),null)")
    results = shop.run()
    check(shop, results, "incremental")
    assert {n: results[n]["way"] for n in MODELS} == {n: way for n, (_, way) in MODELS.items()}


def test_one_table_changes(shop: Project) -> None:
    """Only the right sides of most joins."""
    shop.sql(f"insert into {shop.schema}.customer values (1,'again'),(6,'x')")
    shop.sql(f"delete from {shop.schema}.customer where id = 9")
    results = shop.run()
    changed = {n for n, r in results.items() if r["strategy"] == "incremental"}
    assert changed == {n for n, (query, _) in MODELS.items() if "'customer'" in query}
    for name in MODELS:
        shop.assert_equal(name)


def test_delete_everything_and_begin_again(shop: Project) -> None:
    for table in ("orders", "customer", "events"):
        shop.sql(f"delete from {shop.schema}.{table}")
    shop.sql(f"insert into {shop.schema}.orders values (1,1,10.00,date'2024-01-01'),(2,null,1.00,null)")
    shop.sql(f"insert into {shop.schema}.customer values (1,'a'),(null,'n')")
    shop.sql(f"insert into {shop.schema}.events values (1,'x',array('p','q'),true),(null,null,null,null)")
    check(shop, shop.run(), "incremental")


def test_days_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows enter and leave with the date although no table changed; on the same day there is nothing to do."""
    shop = Project(tmp_path)
    days = [date.today() + timedelta(days=n) for n in range(-3, 4)]
    rows = ", ".join(f"({n}, date'{day.isoformat()}')" for n, day in enumerate(days))
    shop.source("visits", "id int, day date", rows)
    shop.model("recent", "select id, day from {{ source('raw','visits') }} where day <= current_date()")
    assert shop.run()["recent"]["strategy"] == "create"
    shop.assert_equal("recent")
    assert shop.run()["recent"]["strategy"] == "none"
    tomorrow = "SELECT UNIX_DATE(CURRENT_DATE()) + 1 AS `date`, UNIX_MICROS(CURRENT_TIMESTAMP()) AS `timestamp`"
    monkeypatch.setattr("dbt_ivm.bridge.metadata.CLOCK_STATEMENT", tomorrow)
    results = shop.run()
    assert results["recent"]["strategy"] == "incremental"
    assert results["recent"]["rows"] == {"inserted": 1, "updated": 0, "deleted": 0}
    assert len(shop.rows("recent")) == 5
    assert shop.run()["recent"]["strategy"] == "none"

"""PIVOT and UNPIVOT, LATERAL, generators, nested subqueries, USING, mixed set operations and further aggregates through real
dbt on real Delta: always incremental, always equal to recomputation, with Spark's names.

DBT_IVM_SPARK_EVERY_MODEL=1 pytest tests/spark/test_sql_constructs.py       all of MODELS, and every change set
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.project import Project

WIDE, LINES, NOTES = "{{ source('raw','wide') }}", "{{ source('raw','lines') }}", "{{ source('raw','notes') }}"

#: name -> (query, way of the mixed refresh)
MODELS: dict[str, tuple[str, str]] = {
    "unpivot_names": (
        f"select * from (select id, Aa, b, c from {WIDE}) unpivot (v for n in (AA, b as Bb, c))",
        "merge by key",
    ),
    "unpivot_pairs": (
        f"select * from {LINES} unpivot include nulls ((x, y) for n in ((wide_id, qty) as `a b`, (qty, wide_id))) u",
        "merge by row",
    ),
    "pivot_two_columns": (
        f"select * from (select id % 3 as g, k, qty, l.day is null as undated from {WIDE} join {LINES} l on id = wide_id)"
        " pivot (sum(qty) as s, count(*) as n for (k, undated) in (('x', true) as x_t, ('y', false) as y_f))",
        "merge by group",
    ),
    "pivot_casts_values": (
        f"select * from (select k, cast(qty as string) as q, id from {WIDE} join {LINES} l on id = wide_id)"
        " pivot (count(id) for q in (1 as one, 2 as two))",
        "merge by group",
    ),
    "lateral_one_row": (
        f"select w.id, l.n, l.most, l.tags from {WIDE} w, lateral (select count(*) as n, max(qty) as most,"
        f" listagg(tag, ',') within group (order by tag) as tags from {LINES} l where l.wide_id = w.id) l",
        "merge by key",
    ),
    "lateral_left": (
        f"select w.id, l.qty from {WIDE} w left join lateral (select qty from {LINES} l where l.wide_id = w.id) l"
        " on l.qty > w.b",
        "merge by row",
    ),
    "lateral_first": (
        f"select w.id, l.qty, l.tag from {WIDE} w left join lateral (select qty, tag from {LINES} l where l.wide_id <= w.id"
        " order by qty desc, tag, day limit 1) l on true",
        "merge by key",
    ),
    "lateral_union": (
        f"select w.id, l.x from {WIDE} w, lateral (select qty as x from {LINES} l where l.wide_id = w.id union"
        f" select length(note) from {NOTES} n where n.id >= w.b) l",
        "merge by key",
    ),
    "latest_value": (
        f"select id, (select tag from {LINES} l where l.wide_id = w.id order by day desc, qty desc, tag limit 1) as latest,"
        f" (select count(*) filter (where qty > 1) from {LINES} l where l.wide_id = w.id) as n,"
        f" (select sort_array(collect_list(qty)) from {LINES} l where l.wide_id = w.id) as all_of_them from {WIDE} w",
        "merge by key",
    ),
    "grouped_by_subquery": (
        f"select exists (select 1 from {LINES} l where l.wide_id = w.id) as has, count(*) as n from {WIDE} w"
        f" group by exists (select 1 from {LINES} l where l.wide_id = w.id)",
        "merge by group",
    ),
    "pairs_not_in": (
        f"select id, (b, c) in (select qty, wide_id from {LINES}) as known from {WIDE} w"
        f" where (id, b) not in (select wide_id, qty from {LINES} l where l.tag <> w.k)",
        "merge by key",
    ),
    "outer_join_on_subqueries": (
        f"select w.id, l.tag from {WIDE} w left join {LINES} l on l.wide_id = w.id and w.b in (select id from {NOTES})"
        f" and not exists (select 1 from {NOTES} n where n.note = l.tag)",
        "merge by row",
    ),
    "stacked": (
        f"select id, x, y from {WIDE} lateral view stack(2, k, b, cast(id as int), 'z', null) s as x, y, more",
        "merge by key",
    ),
    "lateral_explode": (
        f"select l.tag, e.p, e.x from {LINES} l left join lateral posexplode(split(tag, '')) as e(p, x) on true",
        "merge by row",
    ),
    "exploded_map": (
        f"select id, explode(map('a', Aa, 'b', b)) as (name, value) from {WIDE}",
        "merge by row",
    ),
    "json_fields": (
        f"select id, j.a, j.b from {NOTES} lateral view json_tuple(note, 'a', 'b') j as a, b",
        "merge by row",
    ),
    "using_chain": (
        f"select id, w.k, n.note, m.note as more from {WIDE} w full join {NOTES} n using (id)"
        f" full join (select id + 1 as id, note from {NOTES}) m using (id)",
        "merge by row",
    ),
    "using_right": (
        f"select id, w.k from (select cast(id as string) as id, k from {WIDE}) w right join {NOTES} n using (id)",
        "merge by row",
    ),
    "except_mixed": (
        f"select tag as x, cast(day as timestamp) as t, cast(qty as decimal(5,1)) as q from {LINES} except"
        f" select id, cast(null as date), b from {WIDE}",
        "merge by key",
    ),
    "union_mixed": (
        f"select max(x) as most, count(distinct x) as n from (select b as x from {WIDE} union all select tag from {LINES})",
        "merge recomputed groups",
    ),
    "union_largest": (
        f"select g, max(x) as most from (select id % 2 as g, b as x from {WIDE} union all select 0, tag from {LINES})"
        " group by g",
        "merge by group",
    ),
    "listed": (
        f"select wide_id, listagg(tag) within group (order by tag) as tags, listagg(distinct tag, '|') within group (order by tag desc) as different,"
        " mode(qty) as usual, percentile_cont(0.5) within group (order by qty) as middle, percentile_disc(0.3) within group"
        f" (order by qty desc) as lower, percentile(qty, 0.2) filter (where qty > 1) as low from {LINES} group by wide_id",
        "merge recomputed groups",
    ),
    "statistics": (
        "select wide_id, max_by(tag, qty) filter (where tag <> 'p') as best, try_sum(qty) as total, mean(qty) as average,"
        " kurtosis(qty) as tails, regr_count(qty, wide_id) as n, every(qty > 0) as positive, bit_xor(qty) as bits,"
        f" approx_count_distinct(tag) as about, approx_percentile(qty, 0.5) as near from {LINES} group by wide_id",
        "merge recomputed groups",
    ),
}

#: Further forms of what other models have, too.
VARIATIONS = (
    "unpivot_pairs lateral_left lateral_union grouped_by_subquery using_right union_mixed union_largest json_fields"
    " pivot_casts_values outer_join_on_subqueries except_mixed"
)
EVERY_MODEL = bool(os.environ.get("DBT_IVM_SPARK_EVERY_MODEL"))
if not EVERY_MODEL:
    MODELS = {name: model for name, model in MODELS.items() if name not in VARIATIONS.split()}
in_full = pytest.mark.skipif(not EVERY_MODEL, reason="minutes: make fuzz-spark")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(Path(tmp_path_factory.mktemp("constructs")))
    key = [{"name": "id", "constraints": [{"type": "primary_key"}]}]
    project.source(
        "wide",
        "id bigint, Aa int, b int, c bigint, k string",
        "(1,10,null,5,'x'),(2,null,null,null,'y'),(3,1,2,3,null),(4,0,9,-1,'y')",
        columns=key,
    )
    project.source(
        "lines",
        "wide_id bigint, qty int, tag string, day date",
        "(1,2,'p',date'2024-01-01'),(1,2,'p',date'2024-01-01'),(1,1,'q',null),(2,null,'p',date'2024-01-02'),"
        "(4,7,null,date'2024-01-03'),(null,1,'z',null),(4,1,'ab',null)",
    )
    project.source("notes", "id int, note string", "(1,'p'),(3,'{\"a\": 1}'),(5,null),(null,'x'),(9,'{\"b\": \"y\"}')")
    for name, (query, _) in MODELS.items():
        project.model(name, query, meta={"ivm": {"refresh": "strict"}})
    yield project


def check(shop: Project, strategy: str) -> dict[str, dict[str, object]]:
    results = shop.run()
    assert {n: r["strategy"] for n, r in results.items()} == dict.fromkeys(MODELS, strategy)
    wrong = {}
    for name in MODELS:
        try:
            shop.assert_equal(name)
        except AssertionError as error:
            wrong[name] = str(error)[:400]
    assert not wrong
    return results


def test_first_build(shop: Project) -> None:
    check(shop, "create")
    names = {n: [f.name for f in shop.spark.table(f"{shop.schema}.{n}").schema] for n in MODELS}
    assert names["unpivot_names"] == ["id", "n", "v"]
    assert names["pivot_two_columns"] == ["g", "x_t_s", "x_t_n", "y_f_s", "y_f_n"]
    assert {row[1] for row in shop.rows("unpivot_names")} == {"AA", "Bb", "c"}


def test_mixed_changes_of_every_table(shop: Project) -> None:
    s = shop.schema
    shop.sql(f"insert into {s}.wide values (5,5,1,1,'x'),(6,null,3,null,'x')")
    shop.sql(f"update {s}.wide set b = 1, k = 'x' where id = 2")
    shop.sql(f"delete from {s}.wide where id = 3")
    shop.sql(f"insert into {s}.lines values (5,3,'q',date'2024-02-01'),(1,9,'a',date'2024-02-02'),(6,1,'p',null)")
    shop.sql(f"delete from {s}.lines where tag = 'z' or qty = 7")
    shop.sql(f"update {s}.lines set qty = 4 where tag = 'ab'")
    shop.sql(f'insert into {s}.notes values (2,\'q\'),(6,\'{{"a": "z", "b": 2}}\')')
    shop.sql(f"delete from {s}.notes where id = 1")
    results = check(shop, "incremental")
    assert {n: results[n]["way"] for n in MODELS} == {n: way for n, (_, way) in MODELS.items()}


@in_full
def test_one_side_changes(shop: Project) -> None:
    """A change of numbers only must be added to texts as texts."""
    shop.sql(f"insert into {shop.schema}.wide values (7,null,10,null,null),(8,2,9,null,'y')")
    shop.run()
    for name in MODELS:
        shop.assert_equal(name)


@in_full
def test_delete_everything_and_begin_again(shop: Project) -> None:
    for table in ("wide", "lines", "notes"):
        shop.sql(f"delete from {shop.schema}.{table}")
    shop.sql(f"insert into {shop.schema}.wide values (1,1,1,1,'x'),(2,2,null,2,'y')")
    shop.sql(f"insert into {shop.schema}.lines values (1,1,'p',null),(null,null,null,null)")
    shop.sql(f"insert into {shop.schema}.notes values (1,'p'),(null,null)")
    check(shop, "incremental")

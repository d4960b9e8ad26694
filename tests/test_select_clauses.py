"""What a SELECT may write shorter or elsewhere is the same plan; what has no rule is refused with its reason."""

from __future__ import annotations

import pytest

from dbt_ivm.api import table
from dbt_ivm.catalog.tables import Catalog
from dbt_ivm.errors import Refusal, UserError
from dbt_ivm.frontend import Lowered, lower
from dbt_ivm.operators import Aggregate, Generate, Operator

TABLES = Catalog.of(
    (
        table(
            "db.t",
            {
                "id": "int",
                "a": "int",
                "b": "string",
                "list": "array<int>",
                "map": "map<string,int>",
                "rows": "array<struct<F:int,g:string>>",
            },
        ),
        table("db.u", {"id": "int", "a": "int"}),
    )
)


def lowered(sql: str) -> Lowered:
    return lower(sql, TABLES)


def below(plan: Operator, kind: type[Operator]) -> list[Operator]:
    return [*([plan] if isinstance(plan, kind) else []), *(found for p in plan.inputs for found in below(p, kind))]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("select count(distinct *) as n from db.u", "select count(distinct id, a) as n from db.u"),
        (
            "select a, count(distinct u.*) as n from db.u group by a",
            "select a, count(distinct id, a) as n from db.u group by a",
        ),
        ("select id, hash(*) as h from db.u", "select id, hash(id, a) as h from db.u"),
        ("select u.id, hash(u.*, 1) as h from db.u", "select id, hash(id, a, 1) as h from db.u"),
        ("select coalesce(*) as h from db.u", "select coalesce(id, a) as h from db.u"),
        ("select struct(*) as s from db.u", "select named_struct('id', id, 'a', a) as s from db.u"),
        (
            "select id, (select count(distinct *) from db.u where u.a = t.a) as n from db.t",
            "select id, (select count(distinct u.id, u.a) from db.u where u.a = t.a) as n from db.t",
        ),
        (
            "select count(distinct *) as n from db.u left semi join db.t on t.id = u.id",
            "select count(distinct u.id, u.a) as n from db.u left semi join db.t on t.id = u.id",
        ),
        ("select a, count(*) as n from db.u group by (a)", "select a, count(*) as n from db.u group by a"),
        (
            "select a + 1 as k, count(*) as n from db.u group by ((a + 1))",
            "select a + 1 as k, count(*) as n from db.u group by a + 1",
        ),
        (
            "select a, id, count(*) as n from db.u group by ((a)), rollup((id))",
            "select a, id, count(*) as n from db.u group by a, rollup(id)",
        ),
        ("select count(*) as n from db.u group by all", "select count(*) as n from db.u"),
        (
            "select a + 1 as k, k + 1 as l, sum(id) + 1 as s from db.u group by all",
            "select a + 1 as k, a + 1 + 1 as l, sum(id) + 1 as s from db.u group by a + 1, a + 1 + 1",
        ),
        (
            "select (select max(id) from db.t where t.a = u.a) as m, count(*) as n from db.u group by all",
            "select (select max(id) from db.t where t.a = u.a) as m, count(*) as n from db.u "
            "group by (select max(id) from db.t where t.a = u.a)",
        ),
        (
            "select id, (select count(*) from db.u where u.a = t.a group by all) as n from db.t",
            "select id, (select count(*) from db.u where u.a = t.a) as n from db.t",
        ),
        (
            "select id, col from db.t lateral view explode(list) q",
            "select id, col from db.t lateral view explode(list) q as col",
        ),
        (
            "select id, key, value from db.t lateral view explode(map) q",
            "select id, key, value from db.t lateral view explode(map) q as key, value",
        ),
        (
            "select q.* from db.t lateral view posexplode(list) q",
            "select pos, col from db.t lateral view posexplode(list) q as pos, col",
        ),
        (
            "select * from db.u lateral view stack(2, id, a) q",
            "select u.*, col0 from db.u lateral view stack(2, id, a) q as col0",
        ),
        (
            "select f, g from db.t lateral view inline(rows) q",
            "select f, g from db.t lateral view inline(rows) q as f, g",
        ),
        (
            "select c0, c1 from db.t lateral view json_tuple(b, 'x', 'y') q",
            "select c0, c1 from db.t lateral view json_tuple(b, 'x', 'y') q as c0, c1",
        ),
        (
            "with c as (select list as l from db.t) select col from (select l from c) lateral view explode(l) q",
            "with c as (select list as l from db.t) select col from (select l from c) lateral view explode(l) q as col",
        ),
    ],
)
def test_both_are_one_plan(short: str, long: str) -> None:
    assert lowered(short).plan == lowered(long).plan


@pytest.mark.parametrize("call", ["collect_list(distinct a)", "array_agg(distinct a)", "collect_list(a)"])
def test_lists_are_sorted(call: str) -> None:
    (groups,) = below(lowered(f"select b, {call} as l from db.t group by b").plan, Aggregate)
    assert isinstance(groups, Aggregate)
    (measure,) = groups.measures
    assert measure.call.sql("spark").startswith("SORT_ARRAY(COLLECT_LIST(")
    assert measure.type == "array<int>"


@pytest.mark.parametrize(
    "sql",
    [
        "select posexplode(collect_list(a)) as (p, e) from db.t",
        "select inline(array(struct(max(a), min(a)))) as (p, q) from db.t",
        "select b, count(*) as n, posexplode(array(1, 2)) as (p, e) from db.t group by b",
    ],
)
def test_a_generator_makes_rows_of_groups(sql: str) -> None:
    (made,) = below(lowered(sql).plan, Generate)
    assert isinstance(made, Generate)
    assert below(made.input, Aggregate)


@pytest.mark.parametrize(
    ("sql", "construct", "detail"),
    [
        (
            "select b, explode(collect_list(a)) as e, rank() over (order by count(*)) as r from db.t group by b",
            "lateral",
            "beside window functions over groups",
        ),
        ("select explode(list) as e, count(*) as n from db.t group by all", "lateral", "GROUP BY ALL of EXPLODE"),
        ("select b, rank() over (order by b) as r, count(*) as n from db.t group by all", "window_place", "RANK()"),
        ("select id from range(10)", "lateral", "RANGE(10) without names of its columns"),
        ("select id, col from db.t lateral view explode(from_json(b, b)) q", "lateral", "without names of its columns"),
        ("select coalesce(*) as h from db.t join db.u using (id)", "unparsable", "COALESCE(*)"),
        ("select id, hash(* except (a)) as h from db.u", "unparsable", "* EXCEPT"),
        (
            "select id, (select case when max(u.a) in (select a from db.t x) then 1 end from db.u where u.a = t.a) as z "
            "from db.t",
            "subquery",
            "subqueries beside aggregates in a correlated subquery",
        ),
    ],
)
def test_what_has_no_rule_says_so(sql: str, construct: str, detail: str) -> None:
    with pytest.raises(Refusal) as refused:
        lowered(sql)
    assert refused.value.construct == construct
    assert detail in refused.value.detail


def test_a_name_that_no_generator_can_have_is_an_error() -> None:
    with pytest.raises(UserError, match="IVM_UNRESOLVED"):
        lowered("select nope from db.t lateral view explode(list) q")

"""The same arguments give the same text: plans are fixtures, fingerprints are compared, threads plan at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from dbt_ivm.api import plan_view
from dbt_ivm.refresh.plan import RefreshPlan
from tests.test_fixtures import SHOP

CHANGES = {"shop.fact": (3, 5), "shop.dim": (7, 8), "shop.event": (0, 1)}
QUERIES = (
    "select id, amount from shop.fact where dim_id in (1, 2)",
    "select f.id, d.name, e.kind from shop.fact f join shop.dim d on f.dim_id = d.id join shop.event e on e.id = d.id",
    "select d.region, min(f.amount) as low, avg(f.amount) as middle from shop.fact f "
    "join shop.dim d on f.dim_id = d.id group by d.region having count(*) > 1",
    "select kind, count(distinct id) as n from shop.event group by kind",
    "with x as (select kind, count(*) as n from shop.event group by kind) "
    "select a.kind, b.n from x a join x b on a.n = b.n union all select region, id from shop.dim",
    "select id from shop.fact limit 3",
)


def planned(sql: str) -> RefreshPlan:
    return plan_view(sql, SHOP, changes=CHANGES)


@pytest.mark.parametrize("sql", QUERIES)
def test_planning_twice_gives_the_same_text(sql: str) -> None:
    first, second = planned(sql), planned(sql)
    assert first.to_json() == second.to_json()
    assert first.explain() == second.explain()


def test_planning_in_threads_gives_the_same_text() -> None:
    alone = [planned(sql).to_json() for sql in QUERIES]
    with ThreadPoolExecutor(max_workers=8) as pool:
        together = list(pool.map(lambda sql: planned(sql).to_json(), QUERIES * 8))
    assert together == alone * 8


def test_the_text_has_no_object_ids() -> None:
    assert all(" at 0x" not in planned(sql).explain() for sql in QUERIES)

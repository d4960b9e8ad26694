"""Equalities between values of different types: one double equals several bigints, 2^53 and 2^53 + 1.

What is looked up, marked or grouped by them must not take the several for one, with rules and without, by merge and log.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import strategies as st

from tests.property.duck import Row
from tests.property.sources import OPERATIONS, Operation, Source, operations_on, rows_of
from tests.property.test_histories import SHARDS, History, check_refreshes, sampled

HISTORIES = 32
LOW, HIGH = 2**53, 2**53 + 1

P = Source("p", {"id": "int", "d": "double", "e": "double", "v": "int"}, key=1)
C = Source("c", {"k": "bigint", "w": "int"}, key=1)
U = Source("u", {"k": "bigint", "w": "int"})
TABLES = [P, C, U]

JOINS = (
    "select p.id, p.v, c.w from db.p join db.c on p.d = c.k",
    "select p.id, p.v, c.w from db.p left join db.c on p.d = c.k",
    "select p.id, p.v, c.w from db.p left join db.c on p.d = c.k and c.w > p.v",
    "select p.id, c.w from db.p full join db.c on p.d = c.k",
    "select p.id, c.w as w, b.w as x from db.p left join db.c on p.d = c.k left join db.c b on p.e = b.k",
    "select p.v, sum(c.w) as s, sum(b.w) as t, count(*) as n"
    " from db.p join db.c on p.d = c.k join db.c b on p.e = b.k group by p.v",
    "select g.d, g.n, c.w from (select d, count(*) as n from db.p group by d) g left join db.c on g.d = c.k",
)
#: The other way round each value equals one: these are looked up by key.
LOOKUPS = (
    "select c.k, c.w, g.n from db.c left join (select d, count(*) as n from db.p group by d) g on c.k = g.d",
    "select u.k, c.w, p.v from db.u left join db.c on u.k = c.k left join db.p on c.w = p.id",
)
SUBQUERIES = (
    "select id, v from db.p where d in (select k from db.u) or v = 1",
    "select id, v from db.p where d not in (select k from db.c where w is not null)",
    "select id, exists (select 1 from db.u where u.k = p.d) as m from db.p",
    "select id, exists (select 1 from db.u where u.k = p.d and u.w = p.v) as m from db.p",
    "select id, exists (select 1 from db.u where u.k = p.d group by u.w having count(*) > 1) as m from db.p",
    "select id, (select sum(w) from db.u where u.k = p.d) as m from db.p",
    "select id, (select count(*) from db.u where u.k = p.d and u.w = p.v) as m from db.p",
    "select v, count(*) as n from db.p where d in (select k from db.u group by k) or v = 1 group by v",
    "select p.id, q.s from db.p, lateral (select sum(w) as s from db.u where u.k = p.d) q",
)
VIEWS = JOINS + LOOKUPS + SUBQUERIES

PAIR: list[Row] = [(LOW, 1), (HIGH, 2)]
START: list[list[Row]] = [[(0, float(LOW), float(LOW), 3)], PAIR, PAIR]
#: The row of p has two matches; one goes and comes back, then both change and a row with the same matches comes.
STEPS: list[list[tuple[int, Operation]]] = [
    [(1, ("delete", [1], [])), (2, ("delete", [1], []))],
    [(1, ("insert", [], [(HIGH, 3)])), (2, ("insert", [], [(HIGH, 3)]))],
    [
        (0, ("insert", [], [(1, float(LOW), 1.0, 3)])),
        (1, ("update", [0, 1], [(LOW, 10), (HIGH, 20)])),
        (2, ("update", [0, 1], [(LOW, 10), (HIGH, 20)])),
    ],
]


@pytest.mark.parametrize("sql", VIEWS)
def test_one_value_with_two_equals(sql: str) -> None:
    for rules, apply in product((True, False), ("merge", "log")):
        check_refreshes(History(TABLES, sql, START, STEPS, rules, apply))


@st.composite
def histories(draw: Any) -> History:
    """From few rows that are equal, and others."""
    sql = draw(st.sampled_from(VIEWS))
    initial = [rows + draw(st.lists(rows_of(t), max_size=2)) for t, rows in zip(TABLES, START, strict=True)]
    used = [i for i, t in enumerate(TABLES) if f"db.{t.name}" in sql]
    batches = []
    for _ in range(draw(st.sampled_from([1, 2]))):
        touched = draw(st.lists(st.sampled_from(used), min_size=1, max_size=3))
        batches.append([(number, draw(operations_on(TABLES[number], OPERATIONS))) for number in touched])
    rules, fetches, looks = (draw(st.booleans()) for _ in range(3))
    apply = draw(st.sampled_from(["merge", "log"]))
    return History(TABLES, sql, initial, batches, rules, apply, looks=looks, fetches=fetches)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_refresh_equals_the_query(shard: int) -> None:
    sampled(check_refreshes, histories(), HISTORIES, shard)

"""ORDER BY with LIMIT, windows over everything and the first rows of each group, on random tables.

Where the order leaves rows equal the query allows several answers: the rows shown must be one of them, and be the same
whether they were built or refreshed.  Elsewhere they are the query's own rows.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
import sqlglot

from tests.property.duck import Row, to_duckdb
from tests.property.sources import DOMAINS, OPERATIONS, Operation, Source
from tests.property.test_histories import DUCK, HISTORIES, SEED, History, Run

KEYED = Source("t0", {"c0": "int", "c1": "int", "c2": "string", "c3": "date"}, key=1)
BAG = Source("t1", {"c0": "int", "c1": "int", "c2": "decimal(9,2)"})

#: The one answer.
SETTLED = {
    "the first by what is not selected": "select c1 from db.t1 order by c2 desc, c0, c1 limit 3",
    "by an expression with an alias": "select c0 as a, c1 as c0 from db.t1 order by a + 1 desc, c0, c2 limit 2",
    "groups by an aggregate": (
        "select c1, count(*) as n from db.t0 group by c1 order by max(c0) desc nulls last, n, c1 limit 2"
    ),
    "groups by place, offset": "select c1, sum(c0) as s from db.t1 group by c1 order by 2 desc, 1 limit 2 offset 1",
    "distinct rows": "select distinct c1 from db.t1 order by c1 desc limit 2",
    "over a window": (
        "select c0, rank() over (order by c1) as r from db.t1 order by sum(c1) over (order by c1), c0, c1, c2 limit 3"
    ),
    "a union, and one side": (
        "(select c0 from db.t0 order by c0 desc limit 2) union all select c1 from db.t1 order by 1 nulls last limit 3"
    ),
    "in parentheses": "(select c0, c1 from db.t1) order by c1, c0 limit 2",
    "with a common table expression": (
        "with a as (select c0, c1 from db.t1 order by c0, c1 limit 3) select x.c0, y.c1 from a x left join a y on x.c0 = y.c1"
    ),
    "in EXISTS": "select c0, c2 from db.t0 where exists (select 1 from db.t1 order by c0 offset 3)",
    "in IN": "select c0, c2 from db.t0 where c1 in (select c0 from db.t1 order by c0 desc limit 2)",
    "a scalar": "select c0, (select c1 from db.t1 order by c1 desc limit 1) as most from db.t0",
    "an aggregate of the first": "select sum(c0) as s from (select c0 from db.t0 order by c0 limit 2) x",
    "qualify": "select c0, c1 from db.t0 qualify row_number() over (order by c1, c0) between 2 and 3",
    "several orders": (
        "select c0, c1, rank() over (order by c1 desc) as a, dense_rank() over (order by c2) as b,"
        " count(*) over (order by c3 desc nulls first) as c from db.t0"
    ),
    "lag and lead": (
        "select c0, lag(c1, 2) over (order by c3, c0) as a, lead(c1) over (partition by c2 order by c0 desc) as b,"
        " lag(c1, -1) over (order by c0) as c from db.t0"
    ),
    "frames of values": (
        "select c0, sum(c1) over (order by c0 range between 1 preceding and current row) as a,"
        " sum(c1) over (order by c0 desc range between current row and 1 following) as b,"
        " count(*) over (order by c0 range between 2 preceding and 1 preceding) as c from db.t1"
    ),
    "frames of rows over one order": (
        "select c0, sum(c1) over w as a, max(c1) over (order by c3, c0 rows between 1 following and 2 following) as b,"
        " row_number() over (order by c3, c0) as n from db.t0 window w as (order by c3, c0 rows 1 preceding)"
    ),
    "shares of groups": (
        "select c1, sum(c0) as s, max(sum(c0)) over () as most, ntile(2) over (order by c1) as half,"
        " rank() over (order by sum(c0) desc) as place from db.t1 group by c1"
    ),
    "ranks over a join of groups": (
        "select a.c1, b.n, percent_rank() over (order by a.s, b.n, a.c1) as p from"
        " (select c1, sum(c0) as s from db.t1 group by c1) a join (select c1, count(*) as n from db.t0 group by c1) b"
        " on a.c1 = b.c1"
    ),
    "the first two of each group": (
        "select c1, c0, n from (select c1, c0, row_number() over (partition by c1 order by c0, c2) as n from db.t1)"
        " where n <= 2"
    ),
    "the second of each group": (
        "select c1, c0 from (select c1, c0, row_number() over (partition by c1 order by c0, c2) as n from db.t1) where n = 2"
    ),
    "windows on windows": (
        "select c0, r, sum(r) over (order by r, c0) as s from (select c0, c1, rank() over (order by c1) as r from db.t0)"
        " where r < 4"
    ),
}  # fmt: skip

#: (the query without the limit, the columns that order it, how many rows it keeps)
TIED = {
    "a tie at the end": ("select c1, c0, c2 from db.t1", "c1", 2, 0),
    "descending, with offset": ("select c2, c0 from db.t0", "c2 desc", 2, 1),
    "all are equal": ("select c0, c1 from db.t0", "c1 - c1", 1, 0),
}


#: Values of rows that share their place: (over which rows, the function's argument ordered as SELECT c0, c2, c3, c1, x).
PEERS = {
    "the last": "last_value(c1) over (partition by c2 order by c3)",
    "the last of all": "last(c1) over (order by c3 desc)",
    "the first with a value": "first_value(c1) ignore nulls over (partition by c2 order by c3)",
    "the last with a value": "last_value(c1) ignore nulls over (partition by c2 order by c3)",
    "the second": "nth_value(c1, 2) over (partition by c2 order by c3)",
    "from here on": "first_value(c1) over (partition by c2 order by c3 range between current row and unbounded following)",
    "of the peers": "last_value(c1) over (partition by c2 order by c3 range between current row and current row)",
    "of a whole partition": "last_value(c1) over (partition by c2)",
    "beside the largest": "max_by(c1, c3) over (partition by c2 order by c3)",
    "the first": "first_value(c1) over (partition by c2 order by c3)",
}


#: Histories of each view.
EACH = max(4, HISTORIES // 200)


class TiedRun(Run):
    """``check`` asks for one of the answers that the order allows."""

    def __init__(self, history: History, every: str, order: str) -> None:
        super().__init__(history, enforce_keys=True)
        self.every, self.order = every, order

    def check(self, pin: int) -> None:
        query = to_duckdb(self.query.copy(), self.pins[pin])
        found, allowed = Counter(self.shown()), Counter(DUCK.rows(query))
        every = Counter(
            DUCK.rows(to_duckdb(sqlglot.parse_one(self.every, read="spark"), self.pins[pin])),
        )
        assert not found - every, f"rows that are not there: {found - every}"
        assert self.keys(found) == self.keys(allowed), (found, allowed)

    def keys(self, rows: Counter[Row]) -> Counter[object]:
        """What the order sees of the rows."""
        if self.order == "c1 - c1":
            return Counter({"null": sum(n for r, n in rows.items() if r[1] is None), "0": rows.total()})
        return Counter(row[0] for row in rows.elements())


def random_history(rng: random.Random, sql: str) -> History:
    def row(source: Source) -> Row:
        return tuple(rng.choice(DOMAINS[kind][1]) for kind in source.columns.values())

    def operation(source: Source) -> Operation:
        return rng.choice(OPERATIONS), [rng.randrange(8)], [row(source) for _ in range(rng.randint(1, 3))]

    tables = [KEYED, BAG]
    initial = [[row(s) for _ in range(rng.randint(0, 7))] for s in tables]
    batches = [[(n, operation(s)) for n, s in enumerate(tables) if rng.random() < 0.7] for _ in range(3)]
    looks, fetches = rng.random() < 0.5, rng.random() < 0.5
    way = rng.choice(["log", "merge"])
    return History(tables, sql, initial, batches, rng.random() < 0.7, way, frozenset(), looks, fetches=fetches)


def follow(run: Run) -> None:
    run.build()
    for number in range(len(run.history.batches)):
        run.refresh(number)
        run.check(number + 1)


@pytest.mark.parametrize("sql", SETTLED.values(), ids=SETTLED)
def test_the_rows_of_the_query(sql: str) -> None:
    rng = random.Random(SEED)
    for _ in range(EACH):
        follow(Run(random_history(rng, sql), enforce_keys=True))


@pytest.mark.parametrize(("every", "order", "count", "skipped"), TIED.values(), ids=TIED)
def test_one_of_the_answers(every: str, order: str, count: int, skipped: int) -> None:
    rng = random.Random(SEED)
    for _ in range(EACH):
        history = random_history(rng, f"{every} order by {order} limit {count} offset {skipped}")
        run = TiedRun(history, every, order)
        follow(run)
        refreshed = Counter(run.shown())
        last = [list(t.rows) for t in run.timelines]
        again = TiedRun(History(history.sources, history.sql, last, [], history.rules_on), every, order)
        again.build()
        assert Counter(again.shown()) == refreshed


#: Over rows of which several may be the same: what peers see is in the query's own terms.
LISTS = {
    "a list in order": "size(collect_list(c1) over (partition by c0 order by c2))",
    "the second of equal rows": "nth_value(c1, 2) over (partition by c0, c1 order by c2)",
    "a list of everything": "size(collect_list(c1) over (partition by c0))",
}


@pytest.mark.parametrize("call", LISTS.values(), ids=LISTS)
def test_lists_over_equal_rows(call: str) -> None:
    rng = random.Random(SEED)
    for _ in range(EACH):
        follow(Run(random_history(rng, f"select c0, c1, c2, {call} as x from db.t1"), enforce_keys=True))


#: Several places read other columns of one window whose order leaves rows equal: a number is the same row's in all.
SHARED = {
    "joined with itself": (
        "with r as (select c0, c1, c2, row_number() over (order by c1) as n from db.t1)"
        " select p.c0, q.c2 from r p join r q on p.n = q.n"
    ),
    "joined with itself, per partition": (
        "with r as (select c0, c2, c3, row_number() over (partition by c2 order by c1 is null) as n from db.t0)"
        " select p.c0, count(*) as k, max(q.c3) as d from r p left join r q on p.n = q.n and p.c2 <=> q.c2 group by p.c0"
    ),
    "the first two": (
        "with r as (select c0, c3 from db.t0 order by c1 is null limit 2) select c0 from db.t0 where c0 in (select c0 from r)"
        " and not exists (select 1 from r where r.c3 <=> t0.c3)"
    ),
    "rows around a subquery": (
        "select c0, c3, (select count(*) from db.t1 u where u.c1 < q.n + 100 or q.c3 is null) as k"
        " from (select c0, c3, row_number() over (order by c1 is null) as n from db.t0) q"
    ),
    "groups of rows around a subquery": (
        "select c0, sum((select count(*) from db.t1 u where u.c1 < q.n + 100 or q.c3 is null)) as k"
        " from (select c0, c3, row_number() over (partition by c2 is null order by c1 is null) as n from db.t0) q group by c0"
    ),
}


@pytest.mark.parametrize("sql", SHARED.values(), ids=SHARED)
def test_rows_that_several_places_number(sql: str) -> None:
    rng = random.Random(SEED)
    for _ in range(EACH):
        follow(Run(random_history(rng, sql), enforce_keys=True))


class PeersRun(Run):
    """``check`` asks that peers have one value, which some row of them, or of those before or after, has."""

    def check(self, pin: int) -> None:
        shown = self.shown()
        values: dict[object, set[object]] = {}
        for _, c2, c3, _, x in shown:
            values.setdefault((c2, c3), set()).add(x)
        if "partition" in self.history.sql:
            assert all(len(v) == 1 for v in values.values()), shown
        ignores = "ignore nulls" in self.history.sql
        for _, c2, c3, _, x in shown:
            near = [r for r in shown if "partition" not in self.history.sql or r[1] == c2]
            if "order by c3" in self.history.sql and ignores:  # NULL comes first
                near = [r for r in near if r[2] is None or (c3 is not None and r[2] <= c3)]  # type: ignore[operator]
            if ignores:
                assert x is not None or all(r[3] is None for r in near), shown
            assert x is None or any(r[3] == x for r in near), shown


@pytest.mark.parametrize("call", PEERS.values(), ids=PEERS)
def test_peers_have_one_value_and_always_the_same(call: str) -> None:
    rng = random.Random(SEED)
    for _ in range(EACH):
        sql = f"select c0, c2, c3, c1, {call} as x from db.t0"
        history = random_history(rng, sql)
        run = PeersRun(history, enforce_keys=True)
        follow(run)
        refreshed = Counter(run.shown())
        last = [list(t.rows) for t in run.timelines]
        again = PeersRun(History(history.sources, sql, last, [], history.rules_on), enforce_keys=True)
        again.build()
        assert Counter(again.shown()) == refreshed

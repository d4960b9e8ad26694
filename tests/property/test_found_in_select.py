"""Shapes of SELECT that were wrong once: each a few views over rows with NULLs, and a few random histories.

IN is one thing positive and another negated; of a grouped query it may test keys, expressions of keys and aggregates.
"""

from __future__ import annotations

import random

import pytest

from tests.property.duck import Row
from tests.property.sources import DOMAINS, OPERATIONS, Operation, Source
from tests.property.test_histories import History, Run

LEFT = Source("t0", {"id": "int", "a": "int", "b": "string"}, 1)
RIGHT = Source("t1", {"id": "int", "y": "int", "b": "string"}, 1)
TABLES = [LEFT, RIGHT]
ROWS: list[list[Row]] = [
    [(0, None, "a"), (1, 1, "a"), (2, 2, None), (3, 3, "b"), (4, None, None), (5, 1, "b")],
    [(0, 1, "a"), (1, 3, "b")],
]
#: A NULL among the values comes and goes; then there are none at all.
VALUES: list[list[tuple[int, Operation]]] = [
    [(1, ("insert", [0], [(2, None, None)]))],
    [(1, ("delete", [2], [])), (0, ("insert", [0], [(6, 0, "a"), (7, None, "b")]))],
    [(1, ("delete all", [0], []))],
]
HISTORIES = 2

NOT_IN_OVER_GROUPS = [
    "select a, count(*) as n from db.t0 group by a having a not in (select y from db.t1)",
    "select a, count(*) as n from db.t0 group by a having not (a in (select y from db.t1))",
    "select a, case when a not in (select y from db.t1) then 'out' else 'no' end as k, count(*) as n from db.t0 group by a",
    "select b, count(*) as n from db.t0 o group by b having b not in (select b from db.t1 u where u.b = o.b or u.y > 1)",
]
BOTH_WAYS = [
    "select id, case when a in (select y from db.t1) then 'in' when a not in (select y from db.t1) then 'out' "
    "else 'unknown' end as k from db.t0",
    "select id, a from db.t0 where a in (select y from db.t1) or (not (a in (select y from db.t1)) and b = 'a')",
    "select id, a from db.t0 where (a not in (select y from db.t1) and b = 'a') or a in (select y from db.t1)",
    "select a, count(*) as n from db.t0 group by a "
    "having a in (select y from db.t1) or (a not in (select y from db.t1) and max(b) = 'b')",
]
TESTED = [
    "select a + 1 as k, count(*) as n from db.t0 group by a + 1 having a + 1 in (select y from db.t1)",
    "select a + 1 as k, count(*) as n from db.t0 group by a + 1 having k not in (select y from db.t1)",
    "select a, b, count(*) as n from db.t0 group by grouping sets ((a), (a, b)) having a in (select y from db.t1)",
    "select b, count(*) as n from db.t0 group by b having max(a) not in (select y from db.t1) or b is null",
    "select b, count(*) as n from db.t0 group by b having count(*) in (select y from db.t1)",
    "select b, case when count(*) in (select y from db.t1) then 1 else 0 end as z from db.t0 group by b",
    "select count(*) as n from db.t0 having count(*) not in (select y from db.t1)",
    "select b, count(*) as n from db.t0 group by b having (b, max(a)) in (select b, y from db.t1)",
    "select id from db.t0 o where exists "
    "(select u.b from db.t1 u where u.b = o.b group by u.b having max(u.y) in (select a from db.t0))",
]
GENERATORS = [
    "select explode(collect_list(a)) as e from db.t0",
    "select b, count(*) as n, explode(array(max(a), 7)) as e from db.t0 group by b having count(*) > 1",
    "select b, explode(array(max(a), (select max(y) from db.t1))) as e from db.t0 group by b",
]
#: Without an item that has no aggregate it is one group, also of no rows; subqueries are items like others.
GROUP_BY_ALL = [
    "select count(*) as n, max(a) as m from db.t0 group by all",
    "select count(*) as n from db.t0 group by all having max(a) is null",
    "select case when exists (select 1 from db.t1 where y = a) then 1 else 0 end as k, count(*) as n from db.t0 group by all",
    "select id, (select count(*) from db.t1 where y = a group by all) as n from db.t0",
]
#: A name of the query around a subquery means another relation further in.
NAMES_AGAIN = [
    "select id from db.t0 where exists (select 1 from db.t1 where t1.b = t0.b and t1.y in (select t0.a from db.t0 where t0.b = t1.b))",
    "select id, (select max(y) from db.t1 where t1.b > t0.b and t1.y > (select min(t0.a) from db.t0 where t0.b = t1.b)) as m "
    "from db.t0",
    "select t0.id, u.y, (select count(*) from db.t1 where t1.b = u.b and t1.y in (select t0.a from db.t0) group by t0.id) as n "
    "from db.t0 join db.t1 u on u.id = t0.id",
    "select id from db.t0 where not exists (select y from db.t1 where t1.b = t0.b union select t0.y from db.t1 t0 where t0.y = 1)",
]
#: An item's name inside a key of ORDER BY.
ALIASES = ["select id, (select -u.id as k from db.t1 u where u.b = o.b order by k + 1 limit 1) as z from db.t0 o"]


@pytest.mark.parametrize(
    "sql", [*NOT_IN_OVER_GROUPS, *BOTH_WAYS, *TESTED, *GENERATORS, *GROUP_BY_ALL, *NAMES_AGAIN, *ALIASES]
)
def test_every_refresh_equals_the_query(sql: str) -> None:
    check(History(TABLES, sql, ROWS, [[change for change in batch if used(sql, change)] for batch in VALUES], True))
    for seed in range(HISTORIES):
        check(random_history(sql, random.Random(seed)))


def used(sql: str, change: tuple[int, Operation]) -> bool:
    return f"db.{TABLES[change[0]].name}" in sql


def check(history: History) -> None:
    run = Run(history, True)
    run.build()
    for number, _ in enumerate(history.batches):
        run.refresh(number)
        run.check(number + 1)


def random_history(sql: str, chance: random.Random) -> History:
    def row(source: Source) -> Row:
        return tuple(chance.choice(DOMAINS[kind][1]) for kind in source.columns.values())

    def change() -> tuple[int, Operation]:
        number = chance.randrange(len(TABLES))
        places = [chance.randrange(8) for _ in range(2)]
        return number, (chance.choice(OPERATIONS), places, [row(TABLES[number]) for _ in range(2)])

    initial = [[row(source) for _ in range(chance.choice([0, 3, 6]))] for source in TABLES]
    batch = [c for c in (change() for _ in range(3)) if used(sql, c)]
    return History(TABLES, sql, initial, [batch], chance.random() < 0.7, chance.choice(["log", "merge"]))

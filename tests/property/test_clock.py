"""Views that ask for the date: days pass between refreshes, with and without changes of the tables."""

from __future__ import annotations

import random
from datetime import date, timedelta

import pytest
import sqlglot

from dbt_ivm.api import plan_view
from dbt_ivm.catalog.clock import clock_name
from dbt_ivm.refresh.keeping import APPLY, Keeping
from dbt_ivm.refresh.plan import RefreshPlan
from dbt_ivm.refresh.run import run_steps
from tests.property.duck import Row, to_duckdb
from tests.property.sources import DOMAINS, OPERATIONS, Operation, Source
from tests.property.test_histories import DUCK, MODEL, History, Run, same_bag, sorted_rows

EPOCH, FIRST = date(1970, 1, 1), date(2024, 1, 3)
FACT = Source("t0", {"c0": "int", "c1": "date", "c2": "int"}, key=1)
DIM = Source("t1", {"c0": "int", "c1": "date"})

VIEWS = {
    "a moving window": "select c0, c2 from db.t0 where c1 >= current_date() - 2",
    "a window with two ends": "select c0 from db.t0 where c1 between current_date() - 2 and current_date() and c2 > 0",
    "a negated window, NULL is in no window": "select c0 from db.t0 where not (c1 < current_date())",
    "counts within a window": "select c2, count(*) as n from db.t0 where c1 > current_date() - 3 group by c2",
    "a window over a join": (
        "select a.c0, b.c1 from db.t0 a join db.t1 b on a.c2 = b.c0 where b.c1 <= current_date() and a.c1 <= b.c1"
    ),
    "a window in a subquery": (
        "select c0 from db.t0 a where exists (select 1 from db.t1 b where b.c0 = a.c0 and b.c1 < current_date())"
    ),
    "the date itself": "select c0, c1 = current_date() as is_today from db.t0",
    "the date beside groups": "select c2, max(c1) < current_date() as is_past from db.t0 group by c2",
    "the date inside an aggregate": (
        "select c2, sum(case when c1 <= current_date() then 1 else 0 end) as n from db.t0 group by c2"
    ),
    "the date in an outer join": (
        "select a.c0, b.c1 from db.t0 a left join db.t1 b on a.c0 = b.c0 and b.c1 > current_date()"
    ),
}


class ClockRun(Run):
    """``days``: what the clock shows at the build and at each refresh."""

    def __init__(self, history: History, days: list[date]) -> None:
        super().__init__(history, enforce_keys=True)
        self.days = days

    def version(self, number: int) -> int:
        return (self.days[number] - EPOCH).days

    def build(self) -> None:
        versions = {f"db.{n}": v for n, v in self.pins[0].items()} | {str(clock_name("date")): self.version(0)}
        plan = plan_view(
            self.history.sql, self.tables, model=MODEL, versions=versions, options=self.options, rules=self.rules
        )
        DUCK.run(plan.steps[-1].sql)
        self.check(0)

    def plan(self, number: int, keeping: Keeping | None = None) -> RefreshPlan:
        before, now = self.pins[number], self.pins[number + 1]
        changes = {f"db.{n}": (before[n], now[n]) for n in before if now[n] > before[n]}
        clock = {str(clock_name("date")): (self.version(number), self.version(number + 1))}
        moved = self.days[number] != self.days[number + 1]
        return plan_view(
            self.history.sql,
            self.tables,
            model=MODEL,
            changes=changes | (clock if moved else {}),
            versions={f"db.{n}": v for n, v in now.items()} | {str(clock_name("date")): self.version(number + 1)},
            options=self.options,
            seq=self.seq,
            keeping=keeping or Keeping(),
            rules=self.rules,
        )

    def refresh(self, number: int) -> RefreshPlan:
        plan = self.plan(number)
        if plan.steps:
            assert plan.strategy == "incremental"
            plan, _ = run_steps(lambda keeping: self.plan(number, keeping), Keeping(), self.execute)
            assert plan.steps[-1].kind == APPLY
        return plan

    def check(self, pin: int) -> None:
        query = self.history.sql.replace("current_date()", f"date'{self.days[pin].isoformat()}'")
        expected = DUCK.rows(to_duckdb(sqlglot.parse_one(query, read="spark"), self.pins[pin]))
        found = self.shown()
        assert same_bag(found, expected), f"\nshown    {sorted_rows(found)}\nexpected {sorted_rows(expected)}"


def some_row(rng: random.Random, source: Source) -> Row:
    return tuple(rng.choice(DOMAINS[kind][1]) for kind in source.columns.values())


def some_operation(rng: random.Random, source: Source) -> Operation:
    return rng.choice(OPERATIONS), [rng.randrange(8)], [some_row(rng, source) for _ in range(rng.randint(1, 3))]


@pytest.mark.parametrize("sql", VIEWS.values(), ids=VIEWS)
def test_days_pass(sql: str) -> None:
    rng = random.Random(3)
    for _ in range(12):
        initial = [[some_row(rng, s) for _ in range(rng.randint(0, 7))] for s in (FACT, DIM)]
        batches = [
            [(n, some_operation(rng, s)) for n, s in enumerate((FACT, DIM)) if rng.random() < 0.5] for _ in range(3)
        ]
        days = [FIRST]
        for _ in batches:
            days.append(days[-1] + timedelta(days=rng.choice([0, 1, 1, 2, -1])))
        history = History(
            [FACT, DIM], sql, initial, batches, rng.random() < 0.5, rng.choice(["log", "merge"]), frozenset()
        )
        run = ClockRun(history, days)
        run.build()
        for number in range(len(batches)):
            run.refresh(number)
            run.check(number + 1)


def test_the_same_day_is_no_change() -> None:
    run = ClockRun(History([FACT, DIM], VIEWS["a moving window"], [[], []], [[]], True), [FIRST, FIRST])
    assert run.plan(0).strategy == "none"

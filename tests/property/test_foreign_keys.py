"""Views along foreign keys, histories that respect and that break them, every mode, rules on and off: always exact.

DBT_IVM_FK_HISTORIES=30000 pytest tests/property/test_foreign_keys.py        (default 3,000)
"""

from __future__ import annotations

import os
from collections import Counter

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from dbt_ivm.refresh.plan import RefreshPlan
from tests.property.duck import Row
from tests.property.fk_graphs import KEYS_HOLD, KEYS_REPEAT, REFERENCES_DANGLE, histories, mend
from tests.property.sources import Operation, Source
from tests.property.test_histories import DUCK, SEED, SHARDS, History, Run

HISTORIES = int(os.environ.get("DBT_IVM_FK_HISTORIES", os.environ.get("DBT_IVM_HISTORIES", "3000")))
#: Shrinking a history of five tables takes minutes; DBT_IVM_SHRINK=1 does it.
PHASES = tuple(Phase) if os.environ.get("DBT_IVM_SHRINK") else (Phase.explicit, Phase.generate)


class KeyedRun(Run):
    """Declared foreign keys hold before every refresh, or not."""

    def __init__(self, history: History, kind: str) -> None:
        self.kind = kind
        super().__init__(history, enforce_keys=kind != KEYS_REPEAT)

    def finish_batch(self) -> None:
        if self.kind == KEYS_HOLD:
            mend(self.timelines)

    def learn(self, plan: RefreshPlan) -> None:
        """Rows that reference nothing are counted rightly, whatever happened."""
        super().learn(plan)
        self.edges = plan.edges
        if self.history.foreign_keys == "verify":
            violated = [edge for edge, rows in self.dangling.items() if rows]
            assert all(rows >= 0 for rows in self.dangling.values()), self.dangling
            assert self.kind != KEYS_HOLD or not violated, (violated, plan.edges)

    def check(self, pin: int) -> None:
        super().check(pin)
        for name, rows in self.dangling.items():
            assert rows == self.count_dangling(name, pin), name

    def count_dangling(self, edge: str, pin: int) -> int:
        """Counted anew, for edges between whole tables."""
        (table, columns), (to, keys) = (_end(part) for part in edge.split(" #")[0].split(" -> "))
        if "(SELECT" in self.history.sql or ("LEFT " in self.history.sql and "WHERE" in self.history.sql):
            return self.dangling[edge]  # a filter may leave out rows of the referencing table
        now = self.pins[pin]
        known = " AND ".join(f'r."{c}" IS NOT NULL' for c in columns)
        same = " AND ".join(f'r."{c}" = s."{k}"' for c, k in zip(columns, keys, strict=True))
        rows = DUCK.rows(
            f"SELECT count(*) FROM {table}__v{now[table]} r "
            f"WHERE {known} AND NOT EXISTS (SELECT 1 FROM {to}__v{now[to]} s WHERE {same})"
        )
        count = rows[0][0]
        assert isinstance(count, int)
        return count


def _end(text: str) -> tuple[str, list[str]]:
    table, columns = text.rstrip(")").split("(")
    return table.split(".")[-1], columns.split(", ")


MET: Counter[str] = Counter()


@pytest.mark.parametrize("shard", range(SHARDS))
def test_views_along_foreign_keys_are_exact(shard: int) -> None:
    @seed(SEED * SHARDS + shard)
    @settings(
        max_examples=max(HISTORIES // SHARDS, 1),
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        phases=PHASES,
    )
    @given(histories())
    def run(drawn: tuple[History, str]) -> None:
        check(*drawn)

    run()
    if HISTORIES >= 1600:
        assert set(MET) >= {"holds", "touched", "violated", "trusted", "off"}, MET


def check(history: History, kind: str) -> None:
    run = KeyedRun(history, kind)
    run.build()
    for number in range(len(history.batches)):
        before = (Counter(run.stored()), Counter(run.shown()))
        try:
            plan = run.refresh(number)
        except duckdb.Error as error:  # a key that identifies rows of the view occurs twice: nothing was written
            assert kind == KEYS_REPEAT and "IVM_DUPLICATE_KEY" in str(error), error
            assert before == (Counter(run.stored()), Counter(run.shown()))
            return
        run.check(number + 1)
        MET.update(edge.status.split()[0] for edge in plan.edges)


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize("first_dangles", [True, False])
def test_one_foreign_key_in_several_joins_is_counted_in_each(join: str, first_dangles: bool) -> None:
    """A row of one branch references nothing; what is known of the other branch must not speak for it."""
    edge = (("f",), "t1", ("k",))
    tables = [Source("t0", {"k": "int", "f": "int"}, 1, (edge,)), Source("t1", {"k": "int", "v": "int"}, 1)]
    branch = f"SELECT r.k, s.v FROM (SELECT * FROM db.t0 WHERE k %s 2) r {join} db.t1 s ON r.f = s.k"
    sql = f"{branch % '<'} UNION ALL {branch % '>='}"
    rows: list[Row] = [(1, 7), (2, 0)] if first_dangles else [(1, 0), (2, 7)]
    inserted: list[tuple[int, Operation]] = [(1, ("insert", [], [(7, 5)]))]
    check(History(tables, sql, [rows, [(0, 3)]], [inserted], rules_on=True, apply="merge"), REFERENCES_DANGLE)

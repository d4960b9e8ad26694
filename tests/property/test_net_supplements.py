"""Views of inner, left, right and full joins nested at random, maintained by net supplements and without, on DuckDB.

DBT_IVM_SUPPLEMENTS=20000 pytest -n 2 tests/property/test_net_supplements.py        more histories (default 160)
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

from dbt_ivm.refresh.plan import RefreshPlan
from tests.property.sources import OPERATIONS, Source, operations_on, rows_of
from tests.property.test_histories import SHARDS, History, Run, check_refreshes_with_violations, sampled
from tests.property.views import Columns

HISTORIES = int(os.environ.get("DBT_IVM_SUPPLEMENTS", "160"))

#: The shapes of paper views V2 to V7, as nested pairs; letters are tables.
SHAPES = (
    ("FULL", ("LEFT", "r", "t"), "s"),
    ("FULL", ("FULL", "r", "t"), "s"),
    ("JOIN", ("LEFT", "r", ("JOIN", "s", "t")), "w"),
    ("LEFT", "r", ("LEFT", "s", "t")),
    ("LEFT", ("LEFT", "r", "s"), "t"),
    ("FULL", ("FULL", "r", "t"), ("LEFT", "s", "w")),
)
KINDS = ("JOIN", "LEFT", "LEFT", "RIGHT", "FULL")


@dataclass
class Joins:
    """Draws the SQL of one view; every table is used once."""

    draw: Any
    count: int = 0

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def chance(self, of_ten: int) -> bool:
        return bool(self.draw(st.integers(1, 10)) <= of_ten)

    def shape(self, tables: list[str]) -> Any:
        if len(tables) == 1:
            return tables[0]
        cut = self.draw(st.integers(1, len(tables) - 1))
        return (self.pick(KINDS), self.shape(tables[:cut]), self.shape(tables[cut:]))

    def item(self, shape: Any) -> tuple[str, Columns]:
        """Something to join, with an alias; columns are qualified."""
        self.count += 1
        if isinstance(shape, str):
            alias = f"{shape}{self.count}"
            shape = shape[0]
            where = f" WHERE c1 {self.pick(['> 0', 'IS NOT NULL', '<> 2'])}" if self.chance(2) else ""
            text = f"(SELECT * FROM db.{shape} {where}) AS {alias}" if where else f"db.{shape} AS {alias}"
            return text, [(f"{alias}.{c}", "int") for c in ("c0", "c1", "c2")]
        alias = f"q{self.count}"
        text, columns = self.joined(shape)
        names = [n.replace(".", "_") for n, _ in columns]
        listed = ", ".join(f"{c} AS {n}" for (c, _), n in zip(columns, names, strict=True))
        return f"(SELECT {listed} FROM {text}) AS {alias}", [(f"{alias}.{n}", "int") for n in names]

    def joined(self, shape: Any) -> tuple[str, Columns]:
        if isinstance(shape, str):
            return self.item(shape)
        kind, left, right = shape
        if self.chance(7):  # a chain; else a derived table
            first, columns = self.joined(left)
        else:
            first, columns = self.item(left)
        second, more = self.item(right)
        word = kind if kind == "JOIN" else f"{kind} JOIN"
        return f"{first} {word} {second} ON {self.condition(columns, more, kind)}", columns + more

    def condition(self, left: Columns, right: Columns, kind: str) -> str:
        def some(columns: Columns) -> str:
            usable = [n for n, _ in columns if not n.endswith("c0")] if self.chance(9) else [n for n, _ in columns]
            return str(self.pick(usable))

        equal = f"{some(left)} = {some(right)}"
        if kind == "FULL":  # DuckDB has no other full joins
            return equal
        form = self.draw(st.integers(1, 12))
        if form == 1:
            return f"{some(left)} < {some(right)}"
        if form == 2:
            return f"{some(left)} <=> {some(right)}"
        if form == 3:
            return f"{equal} AND {some(left)} >= {some(right)}"
        if form == 4:
            return f"{equal} AND {some(right)} > 0"
        return equal

    def view(self, shape: Any) -> str:
        text, columns = self.joined(shape)
        names = [n for n, _ in columns]
        shown = self.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
        items = [*shown]
        if self.chance(3):
            items.append(f"coalesce({self.pick(names)}, {self.pick(names)}, 7)")
        if self.chance(2):
            items.append(f"{self.pick(names)} IS NULL")
        listed = ", ".join(f"{e} AS o{i}" for i, e in enumerate(items))
        where = f" WHERE {self.pick(names)} {self.pick(['> 0', '= 1'])}" if self.chance(2) else ""
        return f"SELECT {listed} FROM {text}{where}"


@st.composite
def outer_join_histories(draw: Any) -> History:
    joins = Joins(draw)
    if joins.chance(5):
        shape = joins.pick(SHAPES)
        tables = [c for c in "rstw" if f"'{c}'" in repr(shape)]
    else:
        tables = list("rstwu"[: draw(st.sampled_from([2, 3, 3, 4, 4, 5]))])
        again = ["r_again"] if len(tables) < 4 and joins.chance(3) else []  # a self-join
        shape = joins.shape([*again, *tables])
    keyed = 1 if joins.chance(9) else 0
    sources = [Source(t, {"c0": "int", "c1": "int", "c2": "int"}, keyed) for t in tables]
    sql = joins.view(shape)
    initial = [draw(st.lists(rows_of(s), max_size=5)) for s in sources]
    batches = []
    for _ in range(draw(st.sampled_from([1, 2, 3]))):
        touched = draw(st.lists(st.integers(0, len(tables) - 1), min_size=1, max_size=3))
        batches.append([(number, draw(operations_on(sources[number], OPERATIONS))) for number in touched])
    apply = draw(st.sampled_from(["log", "merge"]))
    looks, fetches = (draw(st.booleans()) for _ in range(2))
    rules_on = joins.chance(9)
    without = ("contract_lookups", "pull_left_joins") if joins.chance(4) else ()  # these take joins along keys first
    return History(
        sources, sql, initial, batches, rules_on, apply, frozenset(), looks, fetches=fetches, without=without
    )


USED: list[bool] = []


def check(history: History) -> None:
    run = Run(history, enforce_keys=True)
    run.build()
    for number in range(len(history.batches)):
        plan: RefreshPlan = run.refresh(number)
        USED.append(any(note.startswith("net supplements for") for note in plan.notes))
        run.check(number + 1)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it can be used, not only where it reads less."""
    import sys

    monkeypatch.setattr(sys.modules["dbt_ivm.optimizer.net_supplements"], "pays", lambda mine, theirs: True)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_refresh_equals_the_query(shard: int, always: None) -> None:
    USED.clear()
    sampled(check, outer_join_histories(), HISTORIES, shard)
    assert sum(USED) > len(USED) / 5


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_violated_key_is_an_error_or_harmless(shard: int, always: None) -> None:
    sampled(check_refreshes_with_violations, outer_join_histories(), HISTORIES // 4, shard)

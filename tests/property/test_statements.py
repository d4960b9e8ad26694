"""Fixed histories: each way to apply is taken, refuses to run twice, and cases that once failed stay right."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from dbt_ivm.api import plan_view
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog
from dbt_ivm.refresh.apply.staging import Bound
from dbt_ivm.refresh.decide import INCREMENTAL, Decision
from dbt_ivm.refresh.keeping import APPLY, KEEP, LOOK_AT_ROWS, LOOK_AT_STORED, Keeping, Known
from dbt_ivm.refresh.plan import Target, following_state, log_so_far, plan_refresh
from dbt_ivm.refresh.state import LOG_MODE, Pin, RowCounts, SourceChange, SourceState, State
from dbt_ivm.refresh.view import compile_view
from tests.property.duck import Row
from tests.property.sources import Operation, Source
from tests.property.test_histories import DUCK, MODEL, History, Run

KEYED = Source("t0", {"c0": "int", "c1": "string"}, key=1)
BAG = Source("t1", {"c0": "int", "c1": "int"})
ROWS: list[list[Row]] = [[(1, "a"), (2, "b"), (None, None)], [(1, 1), (1, 1), (2, None), (None, 3)]]
MIXED: list[tuple[int, Operation]] = [
    (0, ("update", [0], [(1, "c")])),
    (0, ("insert", [], [(3, "a")])),
    (1, ("delete", [0], [])),
    (1, ("insert", [], [(2, 2), (2, 2)])),
]
INSERTS: list[tuple[int, Operation]] = [(0, ("insert", [], [(3, "a")])), (1, ("insert", [], [(2, 2), (2, 2)]))]
#: new keys on both sides of the stored ones
AROUND: list[tuple[int, Operation]] = [(0, ("insert", [], [(0, "a"), (3, "a")]))]
UNCHANGED: list[tuple[int, Operation]] = [(0, ("touch", [0, 1], [])), (1, ("rewrite", [], []))]

WAYS = [
    ("log by key", "select c0, c1 from db.t0", MIXED),
    ("log by group", "select c1, count(*) as n, min(c0) as low from db.t1 group by c1", MIXED),
    ("log recomputed groups", "select c0, count(distinct c1) as n from db.t1 group by c0", MIXED),
    ("merge by key", "select c0, c1 from db.t0", MIXED),
    ("merge by row", "select c1 from db.t1", MIXED),
    ("merge by group", "select c1, count(*) as n, min(c0) as low from db.t1 group by c1", MIXED),
    ("merge recomputed groups", "select c0, count(distinct c1) as n from db.t1 group by c0", MIXED),
    ("append", "select c0, c1 from db.t0", INSERTS),
    ("append", "select c1 from db.t1", INSERTS),
]

ONCE_WRONG = {
    "a constant row in FROM": "select t.c0, k.k from db.t0 t join (select 1 as k) k on t.c0 = k.k",
    "a filtered constant row": "select t.c0, k.k from db.t0 t join (select 1 as k where 1 = 0) k on t.c0 = k.k",
    "a key that a common table expression hides twice": (
        "with w as (select c1 from db.t0) select x.c1 as a, y.c1 as b from w x cross join w y"
    ),
    "rows identified by nothing: both sides are global": (
        "select a.n, b.m from (select count(*) as n from db.t0) a cross join (select sum(c1) as m from db.t1) b"
    ),
    "a constant row that is there when another is": "select 1 as one from (select 2 as k) r left semi join db.t1 t on r.k = t.c0",
    "a negated measure compared": (
        "select p = false as q from (select not (count(*) > 2) as p from db.t1) x where not p is null"
    ),
}


def history(
    sql: str, batch: list[tuple[int, Operation]], rules_on: bool = True, apply: str = "auto", **more: Any
) -> History:
    return History([KEYED, BAG], sql, ROWS, [batch], rules_on, apply, **more)


@pytest.mark.parametrize(("way", "sql", "batch"), WAYS)
def test_a_statement_runs_once(way: str, sql: str, batch: list[tuple[int, Operation]]) -> None:
    run = Run(history(sql, batch, apply="log" if way.startswith("log") else "auto"), enforce_keys=True)
    run.build()
    plan = run.refresh(0)
    assert plan.way == way
    run.check(1)
    before = Counter(run.stored())
    again = plan.steps[-1].sql
    if again.startswith("INSERT"):  # Delta skips it
        DUCK.run(again)
    else:
        # appended rows are looked up first, and then their keys are taken; the refresher asks whether it came second
        guard = "IVM_STALE|IVM_DUPLICATE_KEY" if way == "append" else "IVM_STALE"
        with pytest.raises(duckdb.Error, match=guard):
            DUCK.run(again)
    assert Counter(run.stored()) == before


def test_a_change_of_other_tables_moves_the_state_only() -> None:
    run = Run(history("select c0 from db.t0", []), enforce_keys=True)
    run.build()
    tables = [KEYED.table, BAG.table]
    changes = {"db.t1": (0, 1)}
    plan = plan_view("select c0 from db.t0", tables, model=MODEL, changes=changes, seq=run.seq)
    assert plan.way == "state only"
    run.apply(lambda keeping: plan)
    run.check(1)
    with pytest.raises(duckdb.Error, match="IVM_STALE"):
        DUCK.run(plan.steps[0].sql)


@pytest.mark.parametrize("rules_on", [True, False], ids=["rules on", "rules off"])
@pytest.mark.parametrize("batch", [MIXED, INSERTS, UNCHANGED], ids=["mixed", "inserts", "unchanged"])
@pytest.mark.parametrize("sql", [pytest.param(sql, id=title) for title, sql in ONCE_WRONG.items()])
def test_once_wrong(sql: str, batch: list[tuple[int, Operation]], rules_on: bool) -> None:
    run = Run(history(sql, batch, rules_on), enforce_keys=True)
    run.build()
    run.refresh(0)
    run.check(1)


def test_a_new_key_that_comes_twice_aborts_an_append() -> None:
    """The row is in no stored file, and both are equal: only the statement's own rows tell."""
    twice: list[tuple[int, Operation]] = [(0, ("insert", [], [(77, "z"), (77, "z")]))]
    run = Run(history("select c0, c1 from db.t0", twice), enforce_keys=False)
    run.build()
    assert run.plan(0).way == "append"
    with pytest.raises(duckdb.Error, match="IVM_DUPLICATE_KEY"):
        run.refresh(0)


@pytest.mark.parametrize("batch", [MIXED, INSERTS, UNCHANGED], ids=["mixed", "inserts", "unchanged"])
def test_an_added_duplicate_of_a_declared_key_aborts(batch: list[tuple[int, Operation]]) -> None:
    double: list[tuple[int, Operation]] = [*batch, (0, ("insert", [], [(2, "z")]))]
    run = Run(history("select c0, c1 from db.t0", double), enforce_keys=False)
    run.build()
    before = Counter(run.stored())
    with pytest.raises(duckdb.Error, match="IVM_DUPLICATE_KEY"):
        run.refresh(0)
    assert Counter(run.stored()) == before


@pytest.mark.parametrize(
    ("batch", "kinds"),
    [
        (AROUND, [KEEP, LOOK_AT_ROWS, LOOK_AT_STORED, APPLY]),
        (INSERTS, [KEEP, LOOK_AT_ROWS, APPLY]),
        ([(0, ("delete", [0], []))], [KEEP, LOOK_AT_ROWS, APPLY]),
    ],
    ids=["new keys are looked up", "beyond all stored ones they are new", "without new keys nothing is looked up"],
)
def test_steps_by_log(batch: list[tuple[int, Operation]], kinds: list[str]) -> None:
    run = Run(history("select c0, c1 from db.t0", batch, apply="log"), enforce_keys=True)
    run.build()
    plan = run.refresh(0)
    assert [step.kind for step in plan.steps] == kinds
    assert "RAISE_ERROR" in plan.steps[-1].sql and "IVM_DUPLICATE_KEY" not in plan.steps[-1].sql
    run.check(1)


@pytest.mark.parametrize(
    ("seen", "low", "high", "nulls", "looks_up"),
    [
        (None, 100, 200, frozenset(), True),
        ({"c0": ("1", "99")}, 100, 200, frozenset(), False),
        ({"c0": ("1", "99")}, 100, 200, frozenset({"c0"}), True),
        ({"c0": ("1", "100")}, 100, 200, frozenset(), True),
        ({"c0": ("9", "20")}, 100, 200, frozenset(), False),
        ({"c1": ("a", "b")}, 100, 200, frozenset(), True),
    ],
)  # fmt: skip
def test_keys_beyond_what_was_stored_are_not_looked_up(
    seen: dict[str, tuple[str, str]] | None, low: int, high: int, nulls: frozenset[str], looks_up: bool
) -> None:
    view = compile_view("select c0, c1 from db.t0", Catalog.of([KEYED.table]))
    before = State(1, view.fingerprint, {}, mode=LOG_MODE, seen=seen)
    pins = {KEYED.table.name: Pin(SourceState(1, ""), 0, SourceChange())}
    after = following_state(before, view.fingerprint, {}, 1, mode=LOG_MODE, **log_so_far(before))
    known = Known(bounds=(Bound("c0", "int", str(low), str(high)),), counts=RowCounts(1, 0, 0), new_nulls=nulls)
    target = Target(RelationName.parse("db.model__ivm"))
    plan = plan_refresh(view, target, Decision(INCREMENTAL), pins, before, after, Keeping(known=known))
    assert (LOOK_AT_STORED in [step.kind for step in plan.steps]) == looks_up
    assert ("IVM_DUPLICATE_KEY" in plan.steps[-1].sql) == looks_up, "unknown whether taken: the commit checks"
    for step in plan.steps:
        if step.kind == LOOK_AT_STORED:
            assert ("IS NOT DISTINCT FROM" in step.sql) == bool(nulls), (
                "NULL is compared only where some new key has it"
            )
            assert "BROADCAST" in step.sql, "new keys are known to be few"


def test_a_new_null_key_is_found_among_stored_rows() -> None:
    again: list[tuple[int, Operation]] = [(0, ("insert", [], [(None, "again")]))]
    run = Run(history("select c0, c1 from db.t0", again, apply="log"), enforce_keys=False)
    run.build()
    before = Counter(run.stored())
    assert any(row[0] is None for row in before)
    with pytest.raises(duckdb.Error, match="IVM_DUPLICATE_KEY"):
        run.refresh(0)
    assert Counter(run.stored()) == before


@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize("apply", ["log", "merge"])
def test_believed_keys_are_not_looked_up(apply: str, looks: bool) -> None:
    trusting = history("select c0, c1 from db.t0", AROUND, apply=apply, looks=looks, foreign_keys="trust")
    run = Run(trusting, enforce_keys=True)
    run.build()
    plan = run.refresh(0)
    assert plan.way == "append" and LOOK_AT_STORED not in [step.kind for step in plan.steps]
    assert not any("SEMI JOIN" in step.sql for step in plan.steps)
    run.check(1)
    checking = Run(replace(trusting, foreign_keys="verify"), enforce_keys=True)
    checking.build()
    assert any("SEMI JOIN" in step.sql for step in checking.refresh(0).steps)


def test_large_tables_kept_by_merge_know_the_range_of_their_keys() -> None:
    """Asked for once, widened by appends and merges, forgotten by a commit that does not know its keys."""
    batches: list[list[tuple[int, Operation]]] = [
        [(0, ("insert", [], [(5, "a")]))],
        [(0, ("insert", [], [(7, "a")]))],
        [(0, ("insert", [], [(9, "a")])), (0, ("update", [0], [(1, "x")]))],
        [(0, ("insert", [], [(8, "a")]))],
        [(0, ("insert", [], [(12, "a")]))],
    ]
    large = replace(history("select c0, c1 from db.t0", [], apply="merge", looks=True), batches=batches)
    run = Run(large, enforce_keys=True)
    run.build()
    expected = [
        ("append", True, False, ("1", "5")),
        ("append", False, False, ("1", "7")),
        ("merge by key", False, False, ("1", "9")),
        ("append", False, True, ("1", "9")),
        ("append", False, False, ("1", "12")),
    ]
    for number, (way, asks, looks_up, after) in enumerate(expected):
        plan = run.refresh(number)
        texts = [step.sql for step in plan.steps]
        assert plan.way == way
        assert run.seen is not None and run.seen["c0"] == after
        assert (any("SEMI JOIN" in text for text in texts), "stored_low_1" in "".join(texts)) == (looks_up, asks)
        run.check(number + 1)
    run.history = replace(large, looks=False)
    assert run.plan(4).commit is not None and run.plan(4).commit.seen is None  # type: ignore[union-attr]

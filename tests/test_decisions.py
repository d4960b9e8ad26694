"""Pure decisions: history to a pin, situation to a strategy, messages to a remedy, state to text and back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from dbt_ivm.api import table
from dbt_ivm.bridge.failures import Remedy, classify
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog
from dbt_ivm.cdc.change_feed import pin_source
from dbt_ivm.cdc.commits import read_commits
from dbt_ivm.cdc.files import pin_files, pin_unknown
from dbt_ivm.errors import StrictRefusal, UserError
from dbt_ivm.refresh.choose import LOG_FROM_ROWS, choose
from dbt_ivm.refresh.decide import Situation, decide
from dbt_ivm.refresh.options import Options
from dbt_ivm.refresh.state import Pin, SourceChange, SourceState, State, UnreadableState
from dbt_ivm.refresh.view import compile_view

NAME = RelationName.parse("shop.orders")
START = datetime(2024, 1, 1)
Operation = tuple[str, dict[str, str], dict[str, str]]


def history(*operations: Operation, shift: timedelta = timedelta(0)) -> Any:
    rows = [
        {"version": v, "timestamp": START + timedelta(seconds=7 * v) + shift, "operation": o,
         "operationParameters": parameters, "operationMetrics": metrics}
        for v, (o, parameters, metrics) in enumerate(operations)
    ]  # fmt: skip
    return read_commits(rows[::-1])


CREATED: Operation = ("CREATE TABLE", {}, {})
APPEND: Operation = ("WRITE", {"mode": "Append"}, {"numOutputRows": "3"})
DELETE: Operation = ("DELETE", {}, {"numDeletedRows": "2"})
MERGE: Operation = (
    "MERGE",
    {},
    {"numTargetRowsInserted": "1", "numTargetRowsUpdated": "2", "numTargetRowsDeleted": "0"},
)
COMPLETE: Operation = ("STREAMING UPDATE", {"outputMode": "Complete"}, {"numOutputRows": "3"})
OPTIMIZE: Operation = ("OPTIMIZE", {}, {"numRemovedFiles": "2"})


def recorded(version: int, commits: Any) -> SourceState:
    return SourceState(version, next(c.token for c in commits if c.version == version))


@pytest.mark.parametrize(
    ("operations", "insert_only", "maintenance", "counts"),
    [
        ([APPEND, APPEND], True, False, (6, 0, 0)),
        ([APPEND, DELETE], False, False, (3, 0, 2)),
        ([MERGE], False, False, (1, 2, 0)),
        ([COMPLETE], False, False, (3, None, None)),
        ([OPTIMIZE], True, True, (0, 0, 0)),
        ([("CREATE OR REPLACE TABLE AS SELECT", {}, {"numOutputRows": "9"})], False, False, (9, None, None)),
    ],
)
def test_what_commits_did(operations: Any, insert_only: bool, maintenance: bool, counts: tuple[Any, ...]) -> None:
    commits = history(CREATED, *operations)
    change = pin_source(NAME, commits, recorded(0, commits), feed_is_on=True).change
    assert change is not None and not change.problem
    assert (change.insert_only, change.maintenance_only) == (insert_only, maintenance)
    assert tuple(change.counts.as_dict().values()) == counts


def test_pins() -> None:
    commits = history(CREATED, APPEND)
    assert pin_source(NAME, commits, None, True) == Pin(SourceState(1, commits[0].token))
    assert pin_source(NAME, commits, recorded(1, commits), True).change is None
    other_zone = history(CREATED, APPEND, shift=timedelta(hours=5, minutes=30))
    assert pin_source(NAME, other_zone, recorded(1, commits), True).change is None
    again = history(CREATED, APPEND, shift=timedelta(seconds=61))
    problem = pin_source(NAME, again, recorded(1, commits), True).change
    assert problem is not None and "dropped and created again" in problem.problem
    shorter = pin_source(NAME, commits, SourceState(5, "x"), True).change
    assert shorter is not None and "dropped and created again" in shorter.problem
    cut = pin_source(NAME, commits[:1], recorded(0, commits), True).change
    assert cut is not None and "no longer reaches back" in cut.problem
    off = pin_source(NAME, commits, recorded(0, commits), False).change
    assert off is not None and "ALTER TABLE shop.orders SET TBLPROPERTIES" in off.problem


def test_tables_without_versions() -> None:
    files = [{"path": "a", "size": 1, "modified": 1}]
    first = pin_files(NAME, files, None)
    assert pin_files(NAME, files, first.current).change is None
    changed = pin_files(NAME, [*files, {"path": "b", "size": 1, "modified": 1}], first.current).change
    assert changed is not None and "without versions" in changed.problem
    assert pin_unknown(NAME, SourceState(None, "unknown")).change is not None


VIEW = compile_view("select id from shop.orders", Catalog.of([table("shop.orders", {"id": "int"})]))
WINDOW = compile_view(
    "select id, count(*) over () as n from shop.orders", Catalog.of([table("shop.orders", {"id": "int"})]), visible=("id", "n")
)  # fmt: skip
MOVED = {"shop.orders": Pin(SourceState(2, "b"), 1, SourceChange())}
STILL = {"shop.orders": Pin(SourceState(1, "a"), 1)}
BROKEN = {"shop.orders": Pin(SourceState(2, "b"), 1, SourceChange(problem="history is gone"))}


def state(view: Any = VIEW, **more: Any) -> State:
    return State(3, view.fingerprint, {}, **more)


@pytest.mark.parametrize(
    ("situation", "strategy", "reason"),
    [
        (Situation(VIEW, Options(), STILL), "create", ""),
        (Situation(VIEW, Options(), STILL, state()), "none", "no source changed"),
        (Situation(VIEW, Options(), MOVED, state()), "incremental", ""),
        (Situation(VIEW, Options(), BROKEN, state()), "full", "history is gone"),
        (Situation(VIEW, Options(), STILL, state(), asked_full=True), "full", "asked for"),
        (Situation(VIEW, Options(), MOVED, State(3, "other", {})), "full", "definition"),
        (Situation(VIEW, Options(), MOVED, None, "state row cannot be read"), "full", "cannot be read"),
        (Situation(VIEW, Options(), MOVED, state(is_empty_build=True)), "full", "--empty"),
        (Situation(WINDOW, Options(), MOVED, state(WINDOW)), "full", "window functions"),
        (Situation(WINDOW, Options(), STILL, state(WINDOW)), "none", "no source changed"),
    ],
)
def test_decisions(situation: Situation, strategy: str, reason: str) -> None:
    decision = decide(situation)
    assert decision.strategy == strategy and reason in decision.reason


@pytest.mark.parametrize("situation", [
    Situation(VIEW, Options(refresh="strict"), BROKEN, state()),
    Situation(WINDOW, Options(refresh="strict"), STILL),
])  # fmt: skip
def test_strict_is_an_error(situation: Situation) -> None:
    with pytest.raises(StrictRefusal):
        decide(situation)


def test_state_survives_its_text() -> None:
    before = State(4, "f", {"shop.t": SourceState(0, "c"), "shop.p": SourceState(None, "x")}, 3, 17, ("k",), True)
    assert State.from_row(before.to_json(), 4) == before
    for text in ("not json", "{}", None, '{"state_version": 99}'):
        with pytest.raises(UnreadableState):
            State.from_row(text, 1)


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ("[USER_RAISED_EXCEPTION] IVM_STALE another run", Remedy.RERUN),
        ("[DELTA_CONCURRENT_APPEND] Files were added", Remedy.RERUN),
        ("[USER_RAISED_EXCEPTION] IVM_DUPLICATE_KEY shop.t (id): {\"id\":1} SQLSTATE: P0001", Remedy.DISTRUST_KEY),
        ("[DELTA_MISSING_CHANGE_DATA] Error getting change data", Remedy.REBUILD),
        ("[DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION] Cannot", Remedy.REBUILD),
        ("[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error", Remedy.REBUILD),
        ("[DIVIDE_BY_ZERO] Division by zero", Remedy.RAISE),
    ],
)  # fmt: skip
def test_failures(message: str, remedy: Remedy) -> None:
    failure = classify(message)
    assert failure.remedy is remedy
    if remedy is Remedy.DISTRUST_KEY:
        assert failure.reason == 'shop.t (id): {"id":1}'


@pytest.mark.parametrize(
    "meta",
    [
        {"refresh": "never"},
        {"unheard": 1},
        {"apply": "append"},
        {"float_sums": True},
        {"compact_at": 2},
        {"compact_at": "5%"},
    ],
)
def test_options_are_checked(meta: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        Options.of(meta)


def test_numbers_are_numbers() -> None:
    assert Options.of({"compact_at": 0}).compact_at == 0.0 and Options.of({}).compact_at is None


def test_yaml_off_is_off() -> None:
    assert Options.of({"foreign_keys": False, "auxiliary": False}).foreign_keys == "off"


@pytest.mark.parametrize(
    ("apply", "current", "rows", "mode"),
    [
        ("auto", "merge", 10, "merge"),
        ("auto", "merge", None, "merge"),
        ("auto", "merge", LOG_FROM_ROWS, "log"),
        ("auto", "log", 10, "log"),
        ("log", "merge", 10, "log"),
        ("merge", "log", LOG_FROM_ROWS, "merge"),
    ],
)
def test_the_mode_of_a_keyed_view(apply: str, current: str, rows: int | None, mode: str) -> None:
    orders = table("shop.orders", {"id": "bigint"}, primary_key=["id"])
    view = compile_view("select id from shop.orders", Catalog.of([orders]))
    assert choose(Options(apply=apply), view.layout, current, rows).mode == mode


def test_rows_without_identity_are_merged() -> None:
    view = compile_view("select id from shop.orders", Catalog.of([table("shop.orders", {"id": "bigint"})]))
    assert choose(Options(apply="log"), view.layout, rows=LOG_FROM_ROWS).mode == "merge"


def test_a_source_that_had_no_versions_is_read_anew() -> None:
    pin = pin_source(NAME, history(CREATED, APPEND), SourceState(None, "files"), True)
    assert pin.change is not None and "had no versions" in pin.change.problem


@pytest.mark.parametrize("operation", ["RENAME COLUMN", "DROP COLUMNS"])
def test_a_column_name_may_stand_for_other_values(operation: str) -> None:
    commits = history(CREATED, APPEND, (operation, {}, {}))
    pin = pin_source(NAME, commits, recorded(1, commits), True)
    assert pin.change is not None and "renamed or dropped" in pin.change.problem

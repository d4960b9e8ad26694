"""Subtrees kept as auxiliary views: the bridge's own refreshes on DuckDB, with keys that hold and that do not, and crashes.

    DBT_IVM_SUBTREES=20000 pytest tests/property/test_subtrees.py      more histories (default 800)

After every run the model is its query, as a bag.  A run may die at the commit of the model, when its auxiliary views
have been refreshed already; the next one, perhaps after further changes, is exact.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import HealthCheck, currently_in_test_context, given, note, seed, settings
from hypothesis import strategies as st

from dbt_ivm.bridge.engine import EngineError
from dbt_ivm.bridge.outcome import Outcome
from dbt_ivm.bridge.refresher import Refresher
from dbt_ivm.bridge.request import Request
from dbt_ivm.catalog.declared import DeclaredKeys, ProjectKeys
from dbt_ivm.catalog.describe import IDENTITY_PROPERTY
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import ForeignKey, Key
from dbt_ivm.refresh.options import Options
from dbt_ivm.render.query import sql_text
from dbt_ivm.storage.delta_format import TableOptions
from tests.property.duck import AmbiguousMerge, Row, local_name, to_duckdb
from tests.property.fk_graphs import COMPOSITE, KEYS_HOLD, KEYS_REPEAT, REFERENCES_DANGLE, Joined, _replace
from tests.property.sources import OPERATIONS, Operation, Source, Timeline, operations_on, rows_of
from tests.property.test_foreign_keys import PHASES
from tests.property.test_histories import SEED, SHARDS, same_bag, sorted_rows
from tests.property.test_lineage import LAKE, SPARK_TYPES, LakeEngine

HISTORIES = int(os.environ.get("DBT_IVM_SUBTREES", os.environ.get("DBT_IVM_HISTORIES", "800")))
FACADE, STORAGE = RelationName.parse("db.m"), RelationName.parse("db.m__ivm")
#: Statements that commit, by how they begin; the table comes next.
COMMITS = ("MERGE INTO ", "INSERT INTO ", "INSERT OVERWRITE ", "UPDATE ", "CREATE OR REPLACE TABLE ")
BEFORE, AFTER = "dies before the commit", "dies after the commit"
#: What happened in this process.
SEEN: Counter[str] = Counter()


#: Must come up among the histories of every shard.
EXPECTED = (
    BEFORE,
    AFTER,
    "writers in between",
    "1 kept apart",
    "2 kept apart",
    "holds",
    "touched n",
    "n rows meet none",
)


class Died(Exception):
    """The process is gone; nobody catches that."""


# ---------------------------------------------------------------------------------------------- random histories


@dataclass(frozen=True)
class Round:
    """``between``: commits of writers after an auxiliary view was refreshed and before the model is."""

    commits: list[tuple[int, Operation]]
    dies: str = ""
    full: bool = False
    between: list[tuple[int, Operation]] = field(default_factory=list)


@dataclass(frozen=True)
class Story:
    """``total``: tables whose declared references are never NULL."""

    sources: list[Source]
    total: frozenset[str]
    sql: str
    initial: list[list[Row]]
    rounds: list[Round]
    kind: str
    options: dict[str, Any]


@st.composite
def schemas(draw: Any) -> list[Source]:
    """A chain t0 → t1 → t2 … with further edges between any tables; some edges have a unique key only."""
    count = draw(st.integers(3, 5))
    keys = [draw(st.sampled_from([1, 1, 1, COMPOSITE])) for _ in range(count)]
    found = []
    for number in range(count):
        columns = {f"k{i}": "int" for i in range(keys[number])}
        targets = [number + 1] if number + 1 < count and draw(st.integers(0, 9)) else []
        if draw(st.booleans()):
            targets.append(draw(st.integers(0, count - 1)))
        foreign = []
        for position, to in enumerate(targets):
            referencing = tuple(f"f{position}_{i}" for i in range(keys[to]))
            columns |= {c: "int" for c in referencing}
            foreign.append((referencing, f"t{to}", tuple(f"k{i}" for i in range(keys[to]))))
        columns["v"] = draw(st.sampled_from(["int", "string"]))
        found.append(Source(f"t{number}", columns, keys[number], tuple(foreign)))
    return found


@dataclass
class Deep(Joined):
    """Grows downwards from the newest table where it can, so that subtrees come up."""

    def grow(self) -> None:
        every = self.variables
        if self.sources[every[-1][1]].foreign_keys and self.draw(st.integers(0, 2)):
            self.variables = every[-1:]
            alias, table = every[-1]
            columns, to, keys = self.draw(st.sampled_from(self.sources[table].foreign_keys))
            new = f"r{len(every)}"
            self.conditions.append([f"{alias}.{c} = {new}.{k}" for c, k in zip(columns, keys, strict=True)])
            self.left.append(self.has_left and self.draw(st.booleans()))
            self.variables = [*every, (new, to)]
            return
        super().grow()


@st.composite
def views(draw: Any, sources: list[Source]) -> str:
    first = draw(st.sampled_from([s.name for s in sources if s.foreign_keys] or ["t0"]))
    joined = Deep(draw, {s.name: s for s in sources}, [("r0", first)], [], [], draw(st.integers(0, 3)) == 0)
    for _ in range(draw(st.sampled_from([2, 2, 3, 4]))):
        joined.grow()
    numbers = [c for c, kind in joined.columns() if kind == "int"]
    conditions = []
    if draw(st.integers(0, 2)) == 0:
        conditions.append(f"{draw(st.sampled_from(numbers))} {draw(st.sampled_from(['>=', '<>', '=']))} 1")
    if draw(st.integers(0, 4)) == 0:
        conditions.append(f"{draw(st.sampled_from(numbers))} <= {draw(st.sampled_from(numbers))}")
    source = joined.text(conditions)
    shown = draw(st.lists(st.sampled_from(joined.columns()), min_size=1, max_size=4))
    if draw(st.booleans()):
        key = shown[0][0]
        return (
            f"SELECT {key} AS o0, count(*) AS n, sum({draw(st.sampled_from(numbers))}) AS s\nFROM {source}\n"
            f"GROUP BY {key}"
        )
    return f"SELECT {', '.join(f'{c} AS o{i}' for i, (c, _) in enumerate(shown))}\nFROM {source}"


@st.composite
def stories(draw: Any) -> Story:
    tables: list[Source] = draw(schemas())
    sql = draw(views(tables))
    kind = draw(st.sampled_from([KEYS_HOLD, KEYS_HOLD, KEYS_HOLD, REFERENCES_DANGLE, KEYS_REPEAT]))
    mode = draw(st.sampled_from(["verify", "verify", "off"] + ["trust"] * 2 * (kind == KEYS_HOLD)))
    total = frozenset(t.name for t in tables if kind == KEYS_HOLD and draw(st.integers(0, 2)))
    used = [i for i, t in enumerate(tables) if f"db.{t.name} " in sql]
    rounds = []
    for _ in range(draw(st.sampled_from([1, 2, 3]))):
        kinds = draw(st.sampled_from([OPERATIONS, OPERATIONS, ("insert",), ("update",), ("reinsert", "insert")]))
        touched = draw(st.one_of(st.just(used), st.lists(st.sampled_from(used), max_size=3)))
        commits = [(number, draw(operations_on(tables[number], kinds))) for number in touched]
        dies = draw(st.sampled_from(["", "", "", BEFORE, AFTER]))
        between = [
            (number, draw(operations_on(tables[number], kinds))) for number in touched[: draw(st.integers(0, 2))]
        ]
        rounds.append(Round(commits, dies, draw(st.integers(0, 9)) == 0, between))
    initial = [draw(st.lists(rows_of(t), max_size=6)) for t in tables]
    apply = draw(st.sampled_from(["merge", "log"]))
    options = {"auxiliary": "subtrees", "foreign_keys": mode, "apply": apply}
    return Story(tables, total, sql, initial, rounds, kind, options)


# ---------------------------------------------------------------------------------------------- an engine, on DuckDB


class RefreshEngine(LakeEngine):
    """All statements of a refresh; ``dies`` at the commit of the model itself, ``writers`` come in before that."""

    def __init__(self, dies: str, writers: Callable[[], None]) -> None:
        super().__init__(LAKE)
        self.dies = dies
        self.writers = writers
        self.statements = 0
        self.seconds = {"plan": 0.0, "delta": 0.0, "apply": 0.0}
        self.shown = ""

    def timed(self, phase: str) -> AbstractContextManager[None]:
        return nullcontext()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        self.statements += 1
        if currently_in_test_context():
            note(sql)
        try:
            return self._rows(sql)
        except (duckdb.Error, AmbiguousMerge) as error:
            raise EngineError(str(error)) from error

    def _rows(self, sql: str) -> list[dict[str, Any]]:
        commit = next((c for c in COMMITS if sql.startswith(c)), "")
        if commit:
            return self._commit(RelationName.parse(sql.removeprefix(commit).split()[0]), sql)
        if sql.startswith("DESCRIBE TABLE EXTENDED ") and local_name(sql.split()[-1]) not in LAKE.descriptions:
            raise EngineError("TABLE_OR_VIEW_NOT_FOUND")
        if sql.startswith("DESCRIBE QUERY "):
            found = LAKE.rows("DESCRIBE " + _on_newest(sql.removeprefix("DESCRIBE QUERY ")))
            return [{"col_name": r[0], "data_type": SPARK_TYPES.get(str(r[1]), str(r[1]).lower())} for r in found]
        if sql.startswith("CACHE TABLE "):
            LAKE.run(sql)
            return []
        if sql.startswith("DROP VIEW IF EXISTS "):
            LAKE.connection.execute(sql.replace("VIEW", "TABLE"))
            return []
        if sql.startswith("ALTER VIEW "):
            self.shown = sql.partition(" AS\n")[2]
            return []
        if sql.startswith(("DESCRIBE ", "SELECT __ivm_state")):
            return super().rows(sql)
        return LAKE.dictionaries(to_duckdb(sqlglot.parse_one(sql, read="spark")))

    def _commit(self, storage: RelationName, sql: str) -> list[dict[str, Any]]:
        if storage == STORAGE and self.dies == BEFORE:
            raise Died
        LAKE.commit(storage, sql)
        if sql.startswith("CREATE"):
            identity = sql.partition(f"'{IDENTITY_PROPERTY}' = '")[2].partition("'")[0]
            properties = {IDENTITY_PROPERTY: identity} if identity else {}
            LAKE.describe_table(storage.name, LAKE.types(storage.name), properties)
        if storage == STORAGE and self.dies == AFTER:
            raise Died
        if storage != STORAGE:
            self.writers()
        return []


def _on_newest(sql: str) -> str:
    newest = {name: len(history) - 1 for name, history in LAKE.histories.items()}
    return to_duckdb(sqlglot.parse_one(sql, read="spark"), newest)


class Model:
    def __init__(self, story: Story) -> None:
        self.story = story
        self.shown = ""
        self.warnings: list[str] = []
        self.keys = ProjectKeys(tuple((RelationName.parse(f"db.{s.name}"), self._declared(s)) for s in story.sources))

    def _declared(self, source: Source) -> DeclaredKeys:
        foreign = tuple(ForeignKey(c, RelationName.parse(f"db.{to}"), k) for c, to, k in source.foreign_keys)
        references = {c for columns, _, _ in source.foreign_keys for c in columns}
        not_null = frozenset(references if source.name in self.story.total else ())
        return DeclaredKeys((Key(tuple(source.columns)[: source.key]),), foreign, not_null)

    def request(self, full: bool = False) -> Request:
        return Request(
            model="m",
            sql=self.story.sql,
            facade=FACADE,
            storage=STORAGE,
            options=Options.of(self.story.options),
            table=TableOptions(),
            keys=self.keys,
            storage_exists=STORAGE.name in LAKE.descriptions,
            facade_kind="view" if self.shown else "",
            facade_text=self.shown,
            asked_full=full,
        )

    def refresher(self) -> Refresher:
        return Refresher(RefreshEngine("", lambda: None), self.request(), self.warnings.append)  # type: ignore[arg-type]

    def preview(self) -> None:
        """What explain and a dry run do writes nothing; the rows of the dry run can be computed."""
        before = {name: len(history) for name, history in LAKE.histories.items()}
        told = self.refresher().explain()
        asked = self.refresher()
        prepared = asked.prepare()
        decision = asked.decide(prepared)
        assert told.startswith(f"strategy: {decision.strategy}")
        assert told.count("auxiliary view, refreshed before: ") == len(prepared.view.auxiliary)
        rows = asked.next_rows(prepared) if decision.strategy == "incremental" else None
        if rows is not None:
            LAKE.rows(to_duckdb(sqlglot.parse_one(sql_text(rows), read="spark")))
            SEEN["dry runs"] += 1
        assert before == {name: len(history) for name, history in LAKE.histories.items()}

    def compact(self) -> None:
        """The model stays up to date."""
        self.refresher().compact_now()
        SEEN["compactions"] += 1
        outcome = self.run()
        self.check(outcome)
        assert outcome.strategy in ("none", "incremental"), outcome  # a commit may move states only
        assert not any(outcome.rows.as_dict().values()), outcome

    def run(self, dies: str = "", full: bool = False, writers: Callable[[], None] = lambda: None) -> Outcome:
        engine = RefreshEngine(dies, writers)
        request = self.request(full)
        try:
            outcome = Refresher(engine, request, self.warnings.append).run()  # type: ignore[arg-type]
        finally:
            self.shown = engine.shown or self.shown
        assert outcome.statements == engine.statements
        self.shown = outcome.facade_sql or self.shown
        return outcome

    def check(self, outcome: Outcome) -> None:
        """The rows are those of the sources at one version each, the one that the run tells."""
        found = LAKE.rows(to_duckdb(sqlglot.parse_one(self.shown, read="spark")))
        pinned = {local_name(name): pin.current.version or 0 for name, pin in outcome.pins.items()}
        expected = LAKE.rows(to_duckdb(sqlglot.parse_one(self.story.sql, read="spark"), pinned))
        assert same_bag(found, expected), f"\nshown    {sorted_rows(found)}\nexpected {sorted_rows(expected)}"


def mend(timelines: list[Timeline], total: frozenset[str]) -> None:
    """Until every reference leads to a row: rows go whose references must not be NULL, others lose theirs."""
    by_name = {t.source.name: t for t in timelines}
    settled = False
    while not settled:
        settled = True
        for timeline in timelines:
            names = list(timeline.source.columns)
            for position in reversed(range(len(timeline.rows))):
                row = timeline.rows[position]
                for columns, to, _ in timeline.source.foreign_keys:
                    places = [names.index(c) for c in columns]
                    wanted, target = tuple(row[p] for p in places), by_name[to]
                    present = {r[: target.source.key] for r in target.rows}
                    is_total = timeline.source.name in total
                    if (None in wanted and not is_total) or (None not in wanted and wanted in present):
                        continue
                    settled, timeline.version = False, timeline.version + 1
                    if is_total:
                        timeline._delete([position])
                        break
                    row = tuple(None if i in places else v for i, v in enumerate(row))
                    _replace(timeline, position, row)


def check(story: Story) -> None:
    LAKE.drop_all()
    timelines = [Timeline(s, enforce_key=story.kind != KEYS_REPEAT) for s in story.sources]
    for timeline, rows in zip(timelines, story.initial, strict=True):
        timeline.commit_first(rows)
    settle(story, timelines)
    for timeline in timelines:
        LAKE.describe_table(timeline.source.name, timeline.source.columns, {})
    model = Model(story)
    outcome = model.run()
    assert outcome.strategy == "create"
    model.check(outcome)
    if not outcome.auxiliary and not outcome.reason:
        SEEN["nothing kept apart"] += 1
        return
    for part in outcome.auxiliary.values():
        assert part.strategy == "create"
    SEEN[f"{len(outcome.auxiliary)} kept apart"] += 1
    for round_ in story.rounds:
        for number, operation in round_.commits:
            timelines[number].commit(operation)
        settle(story, timelines)
        late = list(round_.between)
        model.preview()

        def writers(late: list[tuple[int, Operation]] = late) -> None:
            while late:
                number, operation = late.pop()
                timelines[number].commit(operation)
                settle(story, timelines)

        try:
            outcome = model.run(round_.dies, round_.full, writers)
        except Died:
            SEEN[round_.dies] += 1
            continue
        SEEN["writers in between"] += len(late) < len(round_.between)
        model.check(outcome)
        saw(story, round_, outcome)
    outcome = model.run()
    model.check(outcome)
    saw(story, Round([]), outcome)
    assert model.run().strategy == "none"
    model.compact()
    assert model.run().strategy == "none"


def settle(story: Story, timelines: list[Timeline]) -> None:
    if story.kind == KEYS_HOLD:
        mend(timelines, story.total)
    for timeline in timelines:
        LAKE.load(timeline)


def saw(story: Story, round_: Round, outcome: Outcome) -> None:
    parts = {part.strategy for part in outcome.auxiliary.values()}
    if round_.full:
        assert outcome.strategy == "full" and parts <= {"full", "create"}
    elif story.kind == KEYS_REPEAT:
        assert outcome.strategy != "full" or "occurs more than once" in outcome.reason, outcome.reason
    else:
        assert {outcome.strategy, *parts} <= {"incremental", "none"}, (outcome.strategy, outcome.reason, parts)
    assert not (story.kind == KEYS_HOLD and any(e.is_violated for e in outcome.foreign_keys)), outcome.foreign_keys
    if outcome.auxiliary:
        SEEN[f"{outcome.strategy}, parts {' '.join(sorted(parts))}"] += 1
        SEEN.update(re.sub(r"\d+", "n", e.status.split(",")[0]) for e in outcome.foreign_keys)
    elif "occurs more than once" in outcome.reason:
        SEEN["went on without"] += 1


@pytest.mark.parametrize("shard", range(SHARDS))
def test_models_over_their_subtrees_are_exact(shard: int) -> None:
    @seed(SEED * SHARDS + shard)
    @settings(
        max_examples=max(HISTORIES // SHARDS, 1),
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        phases=PHASES,
    )
    @given(stories())
    def run(story: Story) -> None:
        check(story)

    run()
    if HISTORIES >= 800:
        assert all(SEEN[what] for what in EXPECTED), SEEN

"""Models that read models: after every refresh, switch, compaction and rewrite of each, its facade is its query, as a bag.

A history is a chain of models over random sources.  The first one reads the sources, each later one the facade of the
one before it, and with that the change feed of a storage table that is merged, logged, compacted and rewritten at random
while the reader lags behind.

    DBT_IVM_HISTORIES=20000 pytest tests/property/test_lineage.py     more histories (default 2,000)
    DBT_IVM_SEED=7 pytest tests/property/test_lineage.py              other histories; the default seed is 0

Everything between the facts and the statements is the package's own: relations, states and pins are read by the
bridge's MetadataReader from an engine that answers as Delta would, and the steps of a refresh are those of
bridge/refresher.py.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import pytest
import sqlglot
from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st

from dbt_ivm import names
from dbt_ivm.bridge.metadata import KNOWN_STATES, MetadataReader, Stored
from dbt_ivm.catalog.declared import DeclaredKeys, ProjectKeys
from dbt_ivm.catalog.describe import IDENTITY_PROPERTY
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog, Key
from dbt_ivm.cdc.change_feed import FEED_PROPERTY
from dbt_ivm.refresh.apply.state_only import change_state
from dbt_ivm.refresh.choose import choose
from dbt_ivm.refresh.compact import compact, compacted
from dbt_ivm.refresh.decide import CREATE, FULL, INCREMENTAL, NONE, Decision, Situation, decide
from dbt_ivm.refresh.keeping import APPLY, Keeping, Step
from dbt_ivm.refresh.options import Options
from dbt_ivm.refresh.plan import RefreshPlan, Target, following_state, log_so_far, plan_refresh
from dbt_ivm.refresh.run import run_steps
from dbt_ivm.refresh.state import LOG_MODE, MERGE_MODE, Pin, State
from dbt_ivm.refresh.view import CompiledView, compile_view
from dbt_ivm.render.query import sql_text
from dbt_ivm.storage.delta_format import TableOptions
from tests.property.duck import Duck, Row, local_name, to_duckdb
from tests.property.sources import OPERATIONS, Operation, Source, Timeline, operations_on, rows_of, sources
from tests.property.test_histories import SHARDS, WAYS, same_bag, sampled, sorted_rows
from tests.property.test_histories import look as look_on
from tests.property.views import MENTIONS, Columns, ViewBuilder

HISTORIES = int(os.environ.get("DBT_IVM_HISTORIES", "2000"))
#: What happened in this process: ways, switches, compactions, rewrites and lags per role.
SEEN: Counter[str] = Counter()
ROLES = ("parent", "child")

#: DuckDB's types that Spark calls otherwise; sums of integers are BIGINT there.
SPARK_TYPES = {"INTEGER": "int", "HUGEINT": "bigint", "VARCHAR": "string"}


# ---------------------------------------------------------------------------------------------- random histories


@dataclass(frozen=True)
class Move:
    """Something happens to one model: refresh, rewrite (``--full-refresh``) or compaction."""

    model: int
    action: str
    apply: str = "auto"


@dataclass(frozen=True)
class Round:
    """Commits to the sources, as (table number, operation); then what the models do about them, or not yet."""

    commits: list[tuple[int, Operation]]
    moves: list[Move]


@dataclass(frozen=True)
class Lineage:
    """``queries[0]`` reads sources, ``queries[i]`` reads model i − 1 and perhaps sources; ``builds`` are apply options."""

    sources: list[Source]
    queries: list[str]
    initial: list[list[Row]]
    builds: list[str]
    rounds: list[Round]


@dataclass
class ReaderBuilder(ViewBuilder):
    """A view of at most two relations, which statements on several generations can afford; the first one is given."""

    first: Source | None = None

    def relation(self, depth: int) -> tuple[str, Columns]:
        every = self.sources
        if self.first is not None and self.aliases == MENTIONS - 2:
            self.sources = [self.first]
        try:
            return super().relation(depth)
        finally:
            self.sources = every


@st.composite
def lineages(draw: Any, generations: int = 2) -> Lineage:
    tables: list[Source] = draw(sources())[:2]
    queries: list[str] = []
    parent: Source | None = None
    for number in range(generations):
        known = tables if parent is None else [parent, *tables]
        sql, columns = ReaderBuilder(draw, known, aliases=MENTIONS - 2, first=parent).query(0)
        queries.append(sql)
        parent = Source(f"m{number}", dict(columns))
    used = [i for i, t in enumerate(tables) if any(f"db.{t.name} " in sql for sql in queries)]
    initial = [draw(st.lists(rows_of(t), max_size=5)) for t in tables]
    rounds = []
    count = draw(st.sampled_from([1, 2, 2, 3, 3, 4]))
    for position in range(count):
        kinds = draw(st.sampled_from([OPERATIONS, OPERATIONS, ("insert",)]))
        touched = draw(st.lists(st.sampled_from(used), min_size=1, max_size=2))
        commits = [(number, draw(operations_on(tables[number], kinds))) for number in touched]
        rounds.append(Round(commits, draw(moves(generations, is_last=position == count - 1))))
    return Lineage(tables, queries, initial, [draw(applies()) for _ in queries], rounds)


def applies() -> st.SearchStrategy[str]:
    return st.sampled_from(["log", "merge", "log", "auto"])


@st.composite
def moves(draw: Any, generations: int, is_last: bool) -> list[Move]:
    """The first model follows its sources, readers only now and then; in the end everybody catches up."""
    found = []
    for model in range(generations):
        if model == 0 or is_last or draw(st.integers(0, 9)) < 4:
            action = draw(st.sampled_from(["refresh"] * 9 + ["rewrite"]))
            found.append(Move(model, action, draw(applies())))
        if draw(st.integers(0, 9)) < 3:
            found.append(Move(model, "compact"))
    return found


# ---------------------------------------------------------------------------------------------- Delta, on DuckDB


class Lake(Duck):
    """Tables with versions, change feeds and histories, and the answers an engine gives about them."""

    def __init__(self) -> None:
        super().__init__()
        self.histories: dict[str, list[dict[str, Any]]] = {}
        self.descriptions: dict[str, list[dict[str, Any]]] = {}

    def drop_all(self) -> None:
        super().drop_all()
        KNOWN_STATES.clear()  # the next history has the same names, versions and moments
        self.transactions.clear()
        self.histories.clear()
        self.descriptions.clear()

    def load(self, timeline: Timeline) -> None:
        """A source as far as it has come."""
        name = timeline.source.name
        history = self.histories.setdefault(name, [])
        if len(history) == timeline.version + 1:
            return
        timeline.load_snapshot(self)
        timeline.load_feed(self)
        for version in range(len(history), timeline.version + 1):
            if timeline.is_insert_only(version, version):
                self.add_commit(name, "WRITE", {"mode": "Append"})
            else:
                self.add_commit(name, "MERGE", metrics={"numTargetRowsUpdated": 1})

    def commit(self, storage: RelationName, sql: str) -> None:
        """A statement that writes a storage table: one version more, and the change feed that Delta would give."""
        name, remembered = storage.name, dict(self.transactions)
        self.run(sql)
        history = self.histories.setdefault(name, [])
        version = len(history)
        before, after = f"{name}__v{version - 1}", f"{name}__v{version}"
        statements = [f"CREATE OR REPLACE TABLE {after} AS FROM {name}"]
        self.tables += [name, after, f"{name}__changes"]
        if version == 0:
            statements.append(
                f"CREATE OR REPLACE TABLE {name}__changes AS "
                f"SELECT *, '' AS _change_type, 0::BIGINT AS _commit_version FROM {name} LIMIT 0"
            )
            self.add_commit(name, "CREATE TABLE AS SELECT")
        elif sql.startswith("CREATE OR REPLACE TABLE"):
            self.transactions = remembered  # Delta forgets no application when a table is replaced
            if self.types(before) == self.types(name):
                statements += self._feed(name, version, f"FROM {before}", f"FROM {after}")
            else:  # nobody can read changes across that
                empty = f"SELECT *, '' AS _change_type, 0::BIGINT AS _commit_version FROM {name} LIMIT 0"
                statements.append(f"CREATE OR REPLACE TABLE {name}__changes AS {empty}")
            self.add_commit(name, "CREATE OR REPLACE TABLE AS SELECT")
        elif sql.startswith("INSERT OVERWRITE"):
            assert "'dataChange' = 'false'" in sql  # so the feed is silent
            self.add_commit(name, "WRITE", {"mode": "Overwrite"}, metadata=_metadata(sql))
        else:
            gone, came = (f"FROM {a} EXCEPT ALL FROM {b}" for a, b in ((before, after), (after, before)))
            statements += self._feed(name, version, gone, came)
            operation = sql.split()[0]
            if operation == "INSERT":
                self.add_commit(name, "WRITE", {"mode": "Append"}, metadata=_metadata(sql))
            else:  # at least the state row
                self.add_commit(name, operation, metrics={"numTargetRowsUpdated": 1, "numUpdatedRows": 1})
        self.connection.execute("; ".join(statements))

    @staticmethod
    def _feed(name: str, version: int, gone: str, came: str) -> list[str]:
        return [
            f"INSERT INTO {name}__changes SELECT *, '{kind}', {version} FROM ({rows})"
            for kind, rows in (("delete", gone), ("insert", came))
        ]

    def add_commit(
        self,
        name: str,
        operation: str,
        parameters: dict[str, str] | None = None,
        metrics: dict[str, int] | None = None,
        metadata: str = "",
    ) -> None:
        history = self.histories.setdefault(name, [])
        version = len(history)
        commit = {"version": version, "timestamp": datetime(2024, 1, 1) + timedelta(seconds=version)}
        described = {"operationParameters": parameters or {}, "operationMetrics": metrics or {}}
        history.append({**commit, "operation": operation, **described, "userMetadata": metadata})

    def version(self, name: str) -> int:
        return len(self.histories[name]) - 1

    def describe(self, name: str, columns: dict[str, str], details: dict[str, str]) -> None:
        """What DESCRIBE TABLE EXTENDED will say."""
        rows = [{"col_name": c, "data_type": t} for c, t in columns.items()]
        rows.append({"col_name": "# Detailed Table Information", "data_type": ""})
        self.descriptions[name] = rows + [{"col_name": k, "data_type": v} for k, v in details.items()]

    def describe_table(self, name: str, columns: dict[str, str], properties: dict[str, str]) -> None:
        listed = ",".join(f"{k}={v}" for k, v in sorted({**properties, FEED_PROPERTY: "true"}.items()))
        self.describe(name, columns, {"Type": "MANAGED", "Provider": "delta", "Table Properties": f"[{listed}]"})

    def types(self, name: str) -> dict[str, str]:
        found = self.rows(f"DESCRIBE {name}")
        return {str(row[0]): SPARK_TYPES.get(str(row[1]), str(row[1]).lower()) for row in found}


class LakeEngine:
    """The statements by which MetadataReader asks for facts."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake

    def rows(self, sql: str) -> list[dict[str, Any]]:
        words = sql.split()
        if sql.startswith("DESCRIBE TABLE EXTENDED "):
            return self.lake.descriptions[local_name(words[-1])]
        if sql.startswith("DESCRIBE HISTORY "):
            return self.lake.histories[local_name(words[2])][: -int(words[-1]) - 1 : -1]
        assert sql.startswith(f"SELECT {names.STATE}, {names.SEQ} FROM "), sql
        current = re.sub(r" VERSION AS OF \d+", "", sql)  # it is the newest one that is read
        found = self.lake.rows(current.replace(" db.", " "))
        return [{names.STATE: state, names.SEQ: seq} for state, seq in found]


def _metadata(sql: str) -> str:
    found = re.search(r"'userMetadata' = '([^']*)'", sql)
    assert found
    return found[1]


LAKE = Lake()


# ---------------------------------------------------------------------------------------------- models


@lru_cache(maxsize=64)
def compiled(sql: str, catalog: Catalog) -> CompiledView:
    return compile_view(sql, catalog)


@dataclass(frozen=True)
class Look:
    """What is known before a refresh; ``mode`` is the one it wants."""

    view: CompiledView
    stored: Stored | None
    pins: dict[RelationName, Pin]
    decision: Decision
    mode: str

    @property
    def state(self) -> State:
        assert self.stored is not None and self.stored.state is not None
        return self.stored.state


class Model:
    """One model of the chain: the steps of bridge/refresher.py, and beside them the rows it should show.

    The rows it should show after its n-th refresh are the table ``m<number>__v<n>``: for readers of the model what a
    snapshot is for readers of a source.
    """

    def __init__(self, number: int, sql: str, keys: ProjectKeys) -> None:
        self.role = ROLES[number]
        self.name = f"m{number}"
        self.sql = sql
        self.keys = keys
        self.query = sqlglot.parse_one(sql, read="spark")
        self.storage = RelationName.parse(f"db.{self.name}{names.STORAGE_SUFFIX}")
        self.refreshes = 0
        self.reads: dict[str, int] = {}
        self.outputs: tuple[tuple[str, str], ...] = ()
        self.shown = ""
        self.fingerprint = ""

    # the refresh

    def look(self, apply: str, asked_full: bool = False) -> Look:
        reader = MetadataReader(LakeEngine(LAKE), self.keys)  # type: ignore[arg-type]
        view = compiled(self.sql, reader.catalog_of(self.sql))
        assert view.refusal is None, view.refusal
        assert self.fingerprint in ("", view.fingerprint), "the mode of a parent changed the meaning of a child"
        self.fingerprint = view.fingerprint
        stored = reader.stored(self.storage) if self.refreshes else None
        assert stored is None or not stored.problem, stored
        recorded = stored.state.sources if stored and stored.state else {}
        pins = {t.name: reader.pin(t, recorded.get(str(t.name))) for t in view.tables}
        state = stored.state if stored else None
        options = Options.of({"apply": apply})
        by_name = {str(n): p for n, p in pins.items()}
        decision = decide(Situation(view, options, by_name, state, asked_full=asked_full))
        mode = choose(options, view.layout, state.mode if state else MERGE_MODE, stored.rows if stored else None).mode
        return Look(view, stored, pins, decision, mode)

    def build(self, apply: str) -> None:
        look = self.look(apply)
        assert look.decision == Decision(CREATE)
        self.write(look)

    def rewrite(self, apply: str) -> None:
        look = self.look(apply, asked_full=True)
        assert look.decision.strategy == FULL
        self.write(look)
        self.saw("rewrite")

    def refresh(self, apply: str) -> None:
        look = self.look(apply)
        commits = self.commits_since(look)
        assert look.decision.strategy == (INCREMENTAL if commits else NONE), look.decision
        if not commits:
            return
        if look.state.mode != look.mode:
            self.switch(look)
            look = self.look(apply)
            assert look.decision.strategy == INCREMENTAL and look.state.mode == look.mode
        way = self.write(look)
        assert way in WAYS, way
        moved = [kind for kind in commits if kind != "compaction"]
        assert (way == "state only") == (not moved), (way, commits)
        self.saw(way)
        self.saw_lag(commits)

    def write(self, look: Look) -> str:
        """The one statement of a refresh or rewrite, and what has to be true after it; the way taken."""
        layout, known = look.view.layout, look.stored.last_known if look.stored else None
        is_incremental = look.decision.strategy == INCREMENTAL
        version = look.stored.version + 1 if look.stored else 0
        identity = {IDENTITY_PROPERTY: "|".join(layout.identity)} if layout.identity and layout.can_log else {}
        following = following_state(
            known,
            look.view.fingerprint,
            {str(n): p.current for n, p in look.pins.items()},
            storage_version=version,
            rows=look.stored.rows if look.stored and is_incremental else None,
            mode=look.mode,
            epoch=known.epoch if known and is_incremental else version,
            **(log_so_far(known) if known and is_incremental else {}),
        )
        target = Target(self.storage, TableOptions(properties=identity))
        if is_incremental and look.mode == LOG_MODE:
            self.show(look.view, LOG_MODE)
        state = look.stored.state if look.stored else None

        def plan_with(keeping: Keeping) -> RefreshPlan:
            return plan_refresh(look.view, target, look.decision, look.pins, state, following, keeping)

        plan = plan_with(Keeping())
        assert plan.strategy == look.decision.strategy, plan.reason
        if is_incremental:
            plan, _ = run_steps(plan_with, Keeping(), self.execute)
        else:
            self.commit(plan.steps[0].sql)
        self.record_truth(look)
        if not is_incremental:
            LAKE.describe_table(self.storage.name, LAKE.types(self.storage.name), identity)
            self.outputs = tuple(LAKE.types(f"{self.name}__v{self.refreshes}").items())
        self.show(look.view, look.mode)
        self.check()
        return plan.way

    def switch(self, look: Look) -> None:
        """Between merge and log, in a commit of its own."""
        if look.mode == LOG_MODE:
            assert look.stored is not None
            self.show(look.view, LOG_MODE)
            version = look.stored.version + 1
            left = replace(look.state, seq=look.state.seq + 1, storage_version=version, mode=LOG_MODE)
            self.commit(change_state(self.storage, look.state.seq, replace(left, rows=look.stored.rows)))
            self.saw("enters the log")
        else:
            self.leave_live_rows(look, None, MERGE_MODE)
            self.saw("leaves the log")
        self.check()

    def compact(self) -> None:
        look = self.look("auto")
        if look.state.mode != LOG_MODE:
            return
        self.leave_live_rows(look, look.stored.rows if look.stored else None, LOG_MODE)
        self.check()
        self.saw("compaction")

    def leave_live_rows(self, look: Look, rows: int | None, mode: str) -> None:
        assert look.stored is not None
        version, state = look.stored.version, look.state
        left = compacted(state, version, rows, mode)
        self.commit(compact(look.view.layout, self.storage, version, left))
        parts = Counter(part for (part,) in LAKE.rows(f"SELECT {names.PART} FROM {self.storage.name}"))
        assert parts[names.TOMBSTONE_PART] == 0 and parts[names.STATE_PART] == 1, parts

    def execute(self, step: Step, plan: RefreshPlan) -> list[dict[str, object]]:
        if step.is_look:
            return look_on(LAKE, step, plan)
        if step.kind == APPLY:
            self.commit(step.sql)
        else:
            LAKE.run(step.sql)
        return []

    def commit(self, sql: str) -> None:
        if currently_in_test_context():
            note(sql)
        LAKE.commit(self.storage, sql)

    def show(self, view: CompiledView, mode: str) -> None:
        """The facade, as a view for readers and as a query for us."""
        facade = view.facade_select(self.storage.table(), self.outputs, live=mode == LOG_MODE)
        text = sql_text(facade.copy())
        self.shown = to_duckdb(facade)
        listed = ", ".join(f"`{n}`" for n, _ in self.outputs)
        details = {"View Catalog and Namespace": "spark_catalog.db", "View Query Output Columns": f"[{listed}]"}
        LAKE.describe(self.name, dict(self.outputs), {"Type": "VIEW", "View Text": text, **details})

    # what should be true

    def record_truth(self, look: Look) -> None:
        """The query over the sources at their pinned versions, and over what the models before it should show."""
        self.refreshes += 1
        self.reads = {n.name: p.current.version for n, p in look.pins.items() if p.current.version is not None}
        shown = {m.name: m.refreshes for m in MODELS.values()}
        truth = f"{self.name}__v{self.refreshes}"
        query = to_duckdb(self.query.copy(), {**self.reads, **shown})
        LAKE.connection.execute(f"CREATE OR REPLACE TABLE {truth} AS {query}")
        LAKE.tables.append(truth)

    def check(self) -> None:
        """Bag equality of what the model shows and what it should show."""
        found = LAKE.rows(self.shown)
        expected = LAKE.rows(f"FROM {self.name}__v{self.refreshes}")
        assert same_bag(found, expected), (
            f"\n{self.name}\nshown    {sorted_rows(found)}\nexpected {sorted_rows(expected)}"
        )

    # what happened

    def commits_since(self, look: Look) -> list[str]:
        """What happened to the tables it reads since its last refresh."""
        found = []
        for name, read in self.reads.items():
            for commit in LAKE.histories[name][read + 1 :]:
                is_rewrite = commit["operation"].startswith("CREATE OR REPLACE")
                is_compaction = commit["operationParameters"].get("mode") == "Overwrite"
                kind = "rewrite" if is_rewrite else "compaction" if is_compaction else "change"
                found.append(kind)
        return found

    def saw(self, what: str) -> None:
        SEEN[f"{self.role}: {what}"] += 1

    def saw_lag(self, commits: list[str]) -> None:
        if len(commits) > 1:
            self.saw("lags behind")


MODELS: dict[str, Model] = {}


def check_lineage(history: Lineage) -> None:
    keys = ProjectKeys(
        tuple(
            (RelationName.parse(f"db.{s.name}"), DeclaredKeys((Key(tuple(s.columns)[: s.key]),)))
            for s in history.sources
            if s.key
        )
    )
    LAKE.drop_all()
    MODELS.clear()
    timelines = [Timeline(s) for s in history.sources]
    for timeline, rows in zip(timelines, history.initial, strict=True):
        timeline.commit_first(rows)
        LAKE.load(timeline)
        LAKE.describe_table(timeline.source.name, timeline.source.columns, {})
    for number, (sql, apply) in enumerate(zip(history.queries, history.builds, strict=True)):
        model = MODELS[f"m{number}"] = Model(number, sql, keys)
        model.build(apply)
    for step in history.rounds:
        for number, operation in step.commits:
            timelines[number].commit(operation)
        for timeline in timelines:
            LAKE.load(timeline)
        for move in step.moves:
            model = MODELS[f"m{move.model}"]
            if move.action == "compact":
                model.compact()
            elif move.action == "rewrite":
                model.rewrite(move.apply)
            else:
                model.refresh(move.apply)
    SEEN["histories"] += 1


@pytest.mark.parametrize("shard", range(SHARDS))
def test_children(shard: int) -> None:
    sampled(check_lineage, lineages(), HISTORIES, shard)  # type: ignore[arg-type]

"""Facts read from the engine: relations of a query, versions of sources, the state row."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dbt_ivm import names
from dbt_ivm.bridge.engine import Engine, EngineError
from dbt_ivm.catalog.clock import CLOCK_STATEMENT, clock_kind
from dbt_ivm.catalog.declared import ProjectKeys
from dbt_ivm.catalog.describe import (
    IDENTITY_PROPERTY,
    Description,
    describe_statement,
    read_description,
    types_statement,
)
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog, Key, Table, View
from dbt_ivm.cdc.change_feed import FEED_PROPERTY, HISTORY_LIMIT, pin_source
from dbt_ivm.cdc.commits import Commit, read_commits
from dbt_ivm.cdc.files import files_statement, pin_files, pin_unknown
from dbt_ivm.errors import Refusal, UserError
from dbt_ivm.frontend.bind import table_names
from dbt_ivm.frontend.parse import parse
from dbt_ivm.nested_types import is_cut
from dbt_ivm.refresh.state import MERGE_MODE, Pin, RowCounts, SourceChange, SourceState, State, UnreadableState
from dbt_ivm.types import normalise

MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "NoSuchTableException", "not found")

#: A storage table that says this has lost rows or columns of its own; any other failure may be over the next time.
LOST = (
    "UNRESOLVED_COLUMN|FILE_NOT_EXIST|FileNotFound|FILE_NOT_FOUND|FAILED_READ_FILE|PATH_NOT_FOUND|TRUNCATED_TRANSACTION"
    "|DELTA_VERSION|DELTA_STATE_RECOVER|TABLE_ONLY_OPERATION|not a Delta table|MISSING_DELTA_TABLE"
)

#: States by storage table and commit, for processes that run dbt more than once.
KNOWN_STATES: dict[str, State] = {}
MOST_KNOWN_STATES = 1_000


class MetadataReader:
    def __init__(self, engine: Engine, keys: ProjectKeys) -> None:
        self.engine = engine
        self.keys = keys
        self.descriptions: dict[RelationName, Description] = {}
        #: Newest commits of what is pinned: in one run every view reads a source at one version.
        self.held: dict[RelationName, tuple[Commit, ...]] = {}
        #: Versions that tables will have after refreshes that are only planned.
        self.foreseen: dict[RelationName, int] = {}

    def describe(self, name: RelationName) -> Description:
        if name not in self.descriptions:
            try:
                rows = self.engine.rows(describe_statement(name))
            except EngineError as error:
                if any(m in str(error) for m in MISSING):
                    raise UserError(
                        "IVM_UNKNOWN_RELATION", f"the query reads {name}, which does not exist or cannot be read"
                    ) from error
                raise
            self.descriptions[name] = self._with_whole_types(read_description(name, rows))
        return self.descriptions[name]

    def _with_whole_types(self, found: Description) -> Description:
        cut = [c.name for c in found.columns if is_cut(c.type)]
        if not cut:
            return found
        (row,) = self.engine.rows(types_statement(found.name, cut))
        whole = {c: normalise(str(row[c])) for c in cut}
        return replace(found, columns=tuple(replace(c, type=whole.get(c.name, c.type)) for c in found.columns))

    def catalog_of(self, sql: str) -> Catalog:
        """Every relation the query reads, views expanded to any depth.

        A query the parser does not know has an empty catalog; compiling it then gives the refusal.
        """
        found: dict[RelationName, Table | View] = {}
        with contextlib.suppress(Refusal):
            self._collect(sql, (), found)
        return Catalog.of(found.values())

    def _collect(self, sql: str, namespace: tuple[str, ...], found: dict[RelationName, Table | View]) -> None:
        for name, _ in table_names(parse(sql)):
            full = name.within(namespace)
            if full in found:
                continue
            description = self.describe(full)
            found[full] = self._relation(description)
            if description.is_view:
                # a view that cannot be parsed is refused when it is lowered, with its name
                with contextlib.suppress(Refusal, UserError):
                    self._collect(description.view_text, description.view_namespace, found)

    def _relation(self, description: Description) -> Table | View:
        if description.is_view:
            return View(
                description.name,
                description.columns,
                description.view_text,
                description.view_namespace,
                description.view_output,
            )
        declared = self.keys.of(description.name)
        if declared.changes not in ("", "change_feed"):
            raise UserError(
                "IVM_NOT_YET",
                f"meta.ivm.changes.kind: {declared.changes} of {description.name} is not available in this version; "
                "use change_feed",
            )
        columns = {c.name.lower() for c in description.columns}
        keys = tuple(k for k in declared.keys if {c.lower() for c in k.columns} <= columns)
        missing = [k for k in declared.keys if k not in keys]
        if missing:
            raise UserError(
                "IVM_META",
                f"{description.name} has no such column for its declared key {missing[0]} ({missing[0].origin})",
            )
        identity = description.property_value(IDENTITY_PROPERTY)
        if identity:
            keys = (Key((*identity.split("|"), names.PART), "storage"), *keys)
        nullable = tuple(
            replace(c, nullable=c.name.lower() not in {n.lower() for n in declared.not_null})
            for c in description.columns
        )
        return Table(
            description.name,
            nullable,
            keys,
            declared.foreign_keys,
            versioned=description.is_delta,
            live=tuple(identity.split("|")) if identity else (),
        )

    def commits(self, name: RelationName, back_to: int | None = None) -> tuple[Commit, ...]:
        """Newest commits; read again further back only when the wanted version was not among them."""
        commits = read_commits(self.engine.rows(f"DESCRIBE HISTORY {name} LIMIT {HISTORY_LIMIT}"))
        if back_to is not None and commits and commits[-1].version > back_to:
            limit = commits[0].version - back_to + 1
            commits = read_commits(self.engine.rows(f"DESCRIBE HISTORY {name} LIMIT {limit}"))
        return commits

    def held_commits(self, name: RelationName, back_to: int | None = None) -> tuple[Commit, ...]:
        """As ``commits``, without those that came after the first look of this run."""
        known = self.held.get(name)
        if known and (back_to is None or known[-1].version <= back_to):
            return known
        commits = self.commits(name, back_to)
        if known:
            commits = tuple(c for c in commits if c.version <= known[0].version)
        self.held[name] = commits
        return commits

    def exists(self, name: RelationName) -> bool:
        try:
            self.describe(name)
        except UserError:
            return False
        return True

    def pin(self, table: Table, recorded: SourceState | None) -> Pin:
        """The version this refresh reads of one source."""
        if table.name in self.foreseen:
            return pin_foreseen(table.name, self.foreseen[table.name], recorded)
        kind = clock_kind(table.name)
        if kind:
            return pin_clock(self.clock[kind], recorded)
        if not table.versioned:
            try:
                return pin_files(table.name, self.engine.rows(files_statement(table.name)), recorded)
            except EngineError:
                return pin_unknown(table.name, recorded)
        commits = self.held_commits(table.name, recorded.version if recorded else None)
        feed_is_on = self.describe(table.name).has_property(FEED_PROPERTY)
        return pin_source(table.name, commits, recorded, feed_is_on)

    @cached_property
    def clock(self) -> dict[str, int]:
        """What the clocks show to this refresh, read once."""
        (row,) = self.engine.rows(CLOCK_STATEMENT)
        return {kind: int(str(value)) for kind, value in row.items()}

    def query_columns(self, sql: str) -> tuple[tuple[str, str], ...]:
        """Names and types of a query's columns, from the engine's analysis; nothing is executed."""
        text = sql.strip().rstrip(";")
        rows = self.engine.rows(f"DESCRIBE QUERY {text}")
        return tuple((str(r["col_name"]), str(r["data_type"])) for r in rows)

    def stored(self, storage: RelationName) -> Stored:
        """The state of an existing storage table, checked against its own history.

        The last commit by log carries the state with it; otherwise the state row is read, once per commit and process.
        """
        commits: tuple[Commit, ...] = ()
        version = -1
        try:
            commits = self.held[storage] = self.commits(storage)
            version = commits[0].version
            state = _state_of_commit(commits) or self._state_row(storage, commits)
        except UnreadableState as error:
            return Stored(None, f"the storage table {storage} cannot be continued: {error}", version)
        except (EngineError, IndexError) as error:
            if not self.exists(storage):
                return Stored(None, f"the storage table {storage} does not exist", version)
            self._refuse_another_table(storage)
            reason = str(error).strip().split("\n")[0]
            if isinstance(error, EngineError) and not re.search(LOST, str(error)):
                raise  # it may be readable a moment later
            return Stored(None, f"the storage table {storage} cannot be read: {reason}", version)
        moving = self.moving_since(storage, state, commits)
        if len(moving) != 1:
            others = ", ".join(c.operation for c in moving[:-1]) or "its own commit is gone"
            reason = f"somebody else wrote into the storage table {storage} ({others})"
            return Stored(None, reason, version, state)
        return Stored(state, "", version, state, _rows_after(state, moving[0]))

    def _refuse_another_table(self, storage: RelationName) -> None:
        """A table of that name that is not ours is not replaced."""
        description = self.describe(storage)
        if names.PART not in {c.name.lower() for c in description.columns}:
            raise UserError(
                "IVM_NOT_OURS",
                f"{storage} exists and is no storage table of a model: it has no column {names.PART}. "
                "Rename or drop it, or give the model another alias.",
            )

    def moving_since(self, storage: RelationName, state: State, commits: Sequence[Commit]) -> list[Commit]:
        """Commits that moved rows since the one that wrote the state; only that one when nobody else wrote."""
        if commits[-1].version > state.storage_version:
            commits = self.commits(storage, state.storage_version)
        return [c for c in commits if c.version >= state.storage_version and not c.keeps_storage]

    def _state_row(self, storage: RelationName, commits: Sequence[Commit]) -> State:
        """The state row as of the newest commit; what a commit wrote never changes, so it is read once."""
        commit = f"{storage} {commits[0].version} {commits[0].token}"
        state = KNOWN_STATES.get(commit)
        if state is None:
            state = self.state_rows(storage, commits[0].version)[-1]
            while len(KNOWN_STATES) >= MOST_KNOWN_STATES:
                KNOWN_STATES.pop(next(iter(KNOWN_STATES)), None)
            KNOWN_STATES[commit] = state
        return state

    def state_rows(self, storage: RelationName, version: int | None = None) -> list[State]:
        """All state rows, oldest first: one, or one per refresh by log since the table was last rewritten."""
        pinned = "" if version is None else f" VERSION AS OF {version}"
        rows = self.engine.rows(
            f"SELECT {names.STATE}, {names.SEQ} FROM {storage}{pinned} WHERE {names.PART} = {names.STATE_PART}"
        )
        states = sorted((State.from_row(r[names.STATE], r[names.SEQ]) for r in rows), key=lambda s: s.seq)
        if not states:
            raise UnreadableState("it has 0 state rows")
        if len({s.seq for s in states}) < len(states) or (len(states) > 1 and states[-1].mode == MERGE_MODE):
            raise UnreadableState(f"it has {len(states)} state rows")
        return states


@dataclass(frozen=True)
class Stored:
    """A storage table as found.

    Args:
        state: usable state, or None with the ``problem``.
        version: its current table version.
        last_known: state as read, even if not usable (its sequence number goes on).
        rows: data rows in it, when known.
    """

    state: State | None
    problem: str = ""
    version: int = -1
    last_known: State | None = None
    rows: int | None = None


def pin_clock(now: int, recorded: SourceState | None) -> Pin:
    """A clock that shows something else than at the last refresh has changed."""
    current = SourceState(now, "")
    if recorded is None or recorded.version is None or recorded.version == now:
        return Pin(current)
    return Pin(current, recorded.version, SourceChange())


def pin_foreseen(name: RelationName, version: int, recorded: SourceState | None) -> Pin:
    """The version that a table will have when it has been refreshed; by what is not known yet."""
    current = SourceState(version, "")
    if recorded is None or recorded.version is None:
        return Pin(current)
    again = f"source {name} was dropped and created again" if version <= recorded.version else ""
    return Pin(current, recorded.version, SourceChange(RowCounts(None, None, None), problem=again))


def _state_of_commit(commits: Sequence[Commit]) -> State | None:
    """The state in the newest commit that moved rows, if that commit was by log."""
    moving = [c for c in commits if not c.keeps_storage]
    return State.from_metadata(moving[0].metadata) if moving and moving[0].is_ours else None


def _rows_after(state: State, own: Commit) -> int | None:
    """Data rows after the last refresh: what the state recorded before it, moved by that commit's counts."""
    if own.is_ours:
        if own.is_maintenance and own.volume is not None:  # a compaction writes every row
            return own.volume - 1
        changed = state.counts or own.counts
        if state.rows is None or changed.inserted is None or changed.deleted is None:
            return None
        return state.rows + changed.inserted - changed.deleted
    if own.operation == "MERGE" and state.rows is not None:
        inserted, deleted = own.counts.inserted, own.counts.deleted
        return None if inserted is None or deleted is None else state.rows + inserted - deleted
    if own.operation == "UPDATE":
        return state.rows
    written = own.counts.inserted
    return written - 1 if written is not None and own.operation != "MERGE" else None

"""What happened to one model's storage table: a line per commit, newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt_ivm import names
from dbt_ivm.bridge.engine import Engine, EngineError
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.cdc.commits import Commit, read_commits
from dbt_ivm.refresh.state import RowCounts, State, UnreadableState

BUILT, MERGED, LOGGED = "built in full", "incremental, by merge", "incremental, by log"
STATE_ONLY, COMPACTED = "state only", "compaction"

#: Operations that write a storage table as a whole.
BUILDS = ("CREATE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT", "REPLACE TABLE AS SELECT")


def history(engine: Engine, storage: RelationName, limit: int) -> list[dict[str, Any]]:
    """Lines for ``ivm_history``: version, moment, number of the refresh, what it was, rows, reason."""
    rows = engine.rows(f"DESCRIBE HISTORY {storage} LIMIT {int(limit)}")
    commits = read_commits(rows)
    moments = {int(row["version"]): str(row["timestamp"]) for row in rows}
    return history_lines(commits, moments, _states(engine, storage, commits))


def history_lines(
    commits: Sequence[Commit], moments: Mapping[int, str], states: Mapping[int, State]
) -> list[dict[str, Any]]:
    """One line per commit; ``states`` holds the state rows that are still readable."""
    lines = []
    for commit in commits:
        state = states.get(commit.version)
        what = _what(commit)
        lines.append(
            {
                "version": commit.version,
                "at": moments.get(commit.version, ""),
                "refresh": state.seq if state else None,
                "what": what,
                "rows": _rows(what, commit.counts),
                "reason": state.reason if state and what == BUILT else "",
            }
        )
    return lines


def _what(commit: Commit) -> str:
    if commit.is_ours:
        return COMPACTED if commit.operation_mode == "Overwrite" else LOGGED
    if commit.operation in BUILDS:
        return BUILT
    if commit.operation == "MERGE":
        return MERGED
    if commit.operation == "UPDATE":
        return STATE_ONLY
    if commit.keeps_storage:
        return f"maintenance: {commit.operation}"
    return f"written by somebody else: {commit.operation}"


def _rows(what: str, counts: RowCounts) -> str:
    """Rows of the model; our commits write the state row too, which is none of them."""
    if what == BUILT:
        return "" if counts.inserted is None else f"{counts.inserted - 1:,} rows"
    if what not in (MERGED, LOGGED):
        return ""
    updated = counts.updated if what == LOGGED or counts.updated is None else counts.updated - 1
    told = ["?" if n is None else f"{n:,}" for n in (counts.inserted, updated, counts.deleted)]
    return "+{} ~{} -{}".format(*told)


def _states(engine: Engine, storage: RelationName, commits: Sequence[Commit]) -> dict[int, State]:
    """State rows by the version that wrote them, from the table's own feed; none where it is gone."""
    if not commits:
        return {}
    first, last = commits[-1].version, commits[0].version
    wanted = "('insert', 'update_postimage')"
    try:
        rows = engine.rows(
            f"SELECT _commit_version, {names.SEQ}, {names.STATE} FROM table_changes('{storage}', {first}, {last}) "
            f"WHERE {names.PART} = {names.STATE_PART} AND _change_type IN {wanted}"
        )
    except EngineError:
        return {}
    found: dict[int, State] = {}
    for row in rows:
        try:
            found[int(row["_commit_version"])] = State.from_row(row[names.STATE], row[names.SEQ])
        except UnreadableState:
            continue
    return found

"""Delta's commit history: what each commit did, as far as a refresh needs to know."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dbt_ivm.refresh.state import METADATA_MARK, RowCounts, State, UnreadableState

#: Commits that move no rows.
MAINTENANCE = frozenset(
    (
        "OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "ADD CONSTRAINT",
        "DROP CONSTRAINT", "CHANGE COLUMN", "UPDATE COLUMN METADATA", "UPGRADE PROTOCOL", "REORG", "CLUSTER BY",
        "COMPUTE STATS", "DROP FEATURE", "ADD COLUMNS", "RENAME COLUMN", "SET CLUSTERING",
    )
)  # fmt: skip

#: Of these, the ones that leave a storage table as the planner knows it.
KEEPS_STORAGE = MAINTENANCE - {"ADD COLUMNS", "RENAME COLUMN", "DROP COLUMNS"}


#: After these a column name may stand for other values, although no row moved.
RENAMING = frozenset(("RENAME COLUMN", "DROP COLUMNS"))


@dataclass(frozen=True)
class Commit:
    version: int
    token: str  # identifies the commit, see same_commit
    operation: str
    counts: RowCounts
    only_inserts: bool
    metadata: str = ""
    operation_mode: str = ""
    volume: int | None = None  # rows that a refresh by log wrote, tombstones included

    @property
    def is_maintenance(self) -> bool:
        return self.operation in MAINTENANCE or (self.is_ours and self.operation_mode == "Overwrite")

    @property
    def is_ours(self) -> bool:
        """Written by a refresh by log, or a compaction."""
        return self.metadata.startswith(METADATA_MARK)

    @property
    def keeps_storage(self) -> bool:
        return self.operation in KEEPS_STORAGE


def read_commits(rows: Sequence[Mapping[str, Any]]) -> tuple[Commit, ...]:
    """Rows of DESCRIBE HISTORY, newest first."""
    return tuple(_commit(row) for row in rows)


def _commit(row: Mapping[str, Any]) -> Commit:
    operation = str(row["operation"])
    metrics = {k: int(v) for k, v in _mapping(row.get("operationMetrics")).items() if str(v).lstrip("-").isdigit()}
    parameters = _mapping(row.get("operationParameters"))
    counts, only_inserts = _effect(operation, parameters, metrics)
    metadata = str(row.get("userMetadata") or "")
    if metadata.startswith(METADATA_MARK):
        counts, only_inserts = _own_effect(metadata, metrics)
    return Commit(
        int(row["version"]),
        _token(row, operation, metrics),
        operation,
        counts,
        only_inserts,
        metadata,
        str(parameters.get("mode") or ""),
        metrics.get("numOutputRows") if metadata.startswith(METADATA_MARK) else None,
    )


def _own_effect(metadata: str, metrics: Mapping[str, int]) -> tuple[RowCounts, bool]:
    """A refresh by log adds rows to the table, but tombstones take rows away from the view."""
    written = metrics.get("numOutputRows")
    try:
        state = State.from_metadata(metadata)
    except UnreadableState:
        return RowCounts(None, None, None), False
    if state.adds_only:
        return RowCounts(None if written is None else written - 1, 0, 0), True
    return state.counts or RowCounts(None, None, None), False


def _token(row: Mapping[str, Any], operation: str, metrics: Mapping[str, int]) -> str:
    written = row["timestamp"]
    moment = written.replace(tzinfo=None).isoformat() if isinstance(written, datetime) else str(written)
    did = json.dumps([operation, sorted(metrics.items())])
    return f"{moment} {hashlib.sha256(did.encode()).hexdigest()[:8]}"


def same_commit(left: str, right: str) -> bool:
    """Whether two tokens of the same version number are the same commit.

    A table that was dropped and created again has other moments.  Sessions may show the same moment in different time
    zones, so moments may differ by whole quarters of an hour if the commits did the same.

    >>> same_commit("2024-01-01T10:00:00.123000 ab", "2024-01-01T12:00:00.123000 ab")
    True
    >>> same_commit("2024-01-01T10:00:00.123000 ab", "2024-01-01T10:00:07.123000 ab")
    False
    """
    if left == right:
        return True
    (left_moment, _, left_did), (right_moment, _, right_did) = left.rpartition(" "), right.rpartition(" ")
    try:
        apart = datetime.fromisoformat(left_moment) - datetime.fromisoformat(right_moment)
    except ValueError:
        return False
    return left_did == right_did and abs(apart) < timedelta(days=2) and apart % timedelta(minutes=15) == timedelta(0)


def _effect(operation: str, parameters: Mapping[str, Any], metrics: Mapping[str, int]) -> tuple[RowCounts, bool]:
    """Rows by kind (None: unknown), and whether rows were only added."""
    written = metrics.get("numOutputRows")
    mode = str(parameters.get("mode") or parameters.get("outputMode") or "Append")
    if operation in ("WRITE", "STREAMING UPDATE") and mode == "Append":
        return RowCounts(written, 0, 0), True
    if operation == "MERGE":
        updated, deleted = metrics.get("numTargetRowsUpdated"), metrics.get("numTargetRowsDeleted")
        return RowCounts(metrics.get("numTargetRowsInserted"), updated, deleted), updated == 0 and deleted == 0
    if operation == "UPDATE":
        return RowCounts(0, metrics.get("numUpdatedRows"), 0), False
    if operation == "DELETE":
        return RowCounts(0, 0, metrics.get("numDeletedRows")), False
    if operation in MAINTENANCE or operation == "CREATE TABLE":
        return RowCounts(0, 0, 0), True
    if operation == "CREATE TABLE AS SELECT":
        return RowCounts(written, 0, 0), True
    return RowCounts(written, None, None), False


def total(commits: Sequence[Commit]) -> RowCounts:
    """Counts added up; one unknown makes the sum unknown."""

    def add(values: list[int | None]) -> int | None:
        return None if any(v is None for v in values) else sum(v or 0 for v in values)

    return RowCounts(
        add([c.counts.inserted for c in commits]),
        add([c.counts.updated for c in commits]),
        add([c.counts.deleted for c in commits]),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    """A map column arrives as a dict or as JSON text, depending on the connection."""
    if isinstance(value, Mapping):
        return value
    if not value:
        return {}
    try:
        parsed = json.loads(str(value))
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else dict(parsed) if isinstance(parsed, list) else {}

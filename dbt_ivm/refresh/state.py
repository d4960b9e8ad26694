"""The state row: what a storage table holds, written in the same commit as the data."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

STATE_VERSION = 4

#: How refreshes write: MERGE into the stored rows, or rows and tombstones appended (storage/live_rows.py).
MERGE_MODE, LOG_MODE = "merge", "log"

#: Begins the user metadata of a commit by log; the state follows.
METADATA_MARK = "dbt-ivm "


class UnreadableState(Exception):
    """The state row is missing or not ours to read; the remedy is a full refresh."""


@dataclass(frozen=True)
class SourceState:
    """The version of a source the view reflects.  ``commit`` tells the version apart from the same number in a
    table that was dropped and created again; for a table without versions it is the fingerprint of its files."""

    version: int | None
    commit: str


@dataclass(frozen=True)
class RowCounts:
    inserted: int | None = 0
    updated: int | None = 0
    deleted: int | None = 0

    def as_dict(self) -> dict[str, int | None]:
        return {"inserted": self.inserted, "updated": self.updated, "deleted": self.deleted}


@dataclass(frozen=True)
class State:
    """What the storage table reflects after the commit that wrote this.

    Args:
        rows: data rows before that commit, when known.
        mode: how refreshes write; it only changes in a commit that both modes respect.
        epoch: names the build of the table, which its refreshes must find, and the sequence of commits by log.
        adds_only: that commit wrote no tombstones.
        counts: rows changed by that commit; only commits by log know them.
        tombstones: how many the table holds after it.
        refreshes: how many commits by log came since the table was last rewritten.
        seen: smallest and largest value of key columns since then, when known (refresh/apply/seen.py).
        dangling: rows that reference no row, by the name of the foreign key's edge; not told when not counted.
        reason: why that commit rebuilt the table, for ``ivm_history``.
    """

    seq: int
    fingerprint: str
    sources: dict[str, SourceState]
    storage_version: int = 0
    rows: int | None = None
    distrusted: tuple[str, ...] = ()
    is_empty_build: bool = False
    mode: str = MERGE_MODE
    epoch: int = 0
    adds_only: bool = False
    counts: RowCounts | None = None
    tombstones: int = 0
    refreshes: int = 0
    seen: dict[str, tuple[str, str]] | None = None
    dangling: dict[str, int] = field(default_factory=dict)
    reason: str = ""

    def to_json(self) -> str:
        """The text in the state row."""
        document = {
            "seq": self.seq,
            "mode": self.mode,
            "epoch": self.epoch,
            "adds_only": self.adds_only,
            "state_version": STATE_VERSION,
            "fingerprint": self.fingerprint,
            "sources": {n: {"version": s.version, "commit": s.commit} for n, s in sorted(self.sources.items())},
            "storage_version": self.storage_version,
            "rows": self.rows,
            "distrusted": list(self.distrusted),
            "is_empty_build": self.is_empty_build,
            "tombstones": self.tombstones,
            "refreshes": self.refreshes,
            "seen": self.seen,
            "dangling": self.dangling,
            "reason": self.reason,
            "counts": self.counts.as_dict() if self.counts else None,
        }
        # in a statement: Spark would put the value of a setting where it says ${name}
        return json.dumps(document, sort_keys=True).replace("${", "\\u0024{")

    @staticmethod
    def from_metadata(text: str) -> State:
        """The state in a commit's user metadata."""
        return State.from_row(text.removeprefix(METADATA_MARK), None)

    @staticmethod
    def from_row(text: object, seq: object) -> State:
        """The state in a state row; the row's own sequence number is the one that counts."""
        try:
            document = json.loads(str(text))
            if document["state_version"] != STATE_VERSION:
                raise UnreadableState(f"its state has version {document['state_version']}, not {STATE_VERSION}")
            return State(
                seq=int(str(document["seq"] if seq is None else seq)),
                fingerprint=document["fingerprint"],
                sources={n: SourceState(s["version"], s["commit"]) for n, s in document["sources"].items()},
                storage_version=document["storage_version"],
                rows=document["rows"],
                distrusted=tuple(document["distrusted"]),
                is_empty_build=document["is_empty_build"],
                mode=document["mode"],
                epoch=document["epoch"],
                adds_only=document["adds_only"],
                counts=RowCounts(**document["counts"]) if document["counts"] else None,
                tombstones=document["tombstones"],
                refreshes=document["refreshes"],
                seen={c: (low, high) for c, (low, high) in document["seen"].items()} if document["seen"] else None,
                dangling={edge: int(rows) for edge, rows in document["dangling"].items()},
                reason=str(document.get("reason") or ""),
            )
        except UnreadableState:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnreadableState(f"its state row cannot be read ({type(error).__name__}: {error})") from error


@dataclass(frozen=True)
class SourceChange:
    """What happened to a source since the version in the state.

    Args:
        maintenance_only: only commits that move no data (OPTIMIZE, properties).
        insert_only: every commit only added rows.
        volume: rows written by commits whose effect on the rows is not told by their counts.
        problem: why the change cannot be read, as the reason for a full refresh.
    """

    counts: RowCounts = field(default_factory=RowCounts)
    insert_only: bool = False
    maintenance_only: bool = False
    problem: str = ""
    volume: int | None = None


@dataclass(frozen=True)
class Pin:
    """The version of a source this refresh reads, and the change since the last one (None: unchanged)."""

    current: SourceState
    before: int | None = None
    change: SourceChange | None = None

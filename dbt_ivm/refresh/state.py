"""The state row: what a storage table holds, written in the same commit as the data."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

STATE_VERSION = 1


class UnreadableState(Exception):
    """The state row is missing or not ours to read; the remedy is a full refresh."""


@dataclass(frozen=True)
class SourceState:
    """The version of a source the view reflects.  ``commit`` tells the version apart from the same number in a
    table that was dropped and created again; for a table without versions it is the fingerprint of its files."""

    version: int | None
    commit: str


@dataclass(frozen=True)
class State:
    seq: int
    fingerprint: str
    sources: dict[str, SourceState]
    storage_version: int = 0
    rows: int | None = None
    distrusted: tuple[str, ...] = ()
    is_empty_build: bool = False

    def to_json(self) -> str:
        """The text in the state row; the sequence number has a column of its own."""
        document = {
            "state_version": STATE_VERSION,
            "fingerprint": self.fingerprint,
            "sources": {n: {"version": s.version, "commit": s.commit} for n, s in sorted(self.sources.items())},
            "storage_version": self.storage_version,
            "rows": self.rows,
            "distrusted": list(self.distrusted),
            "is_empty_build": self.is_empty_build,
        }
        return json.dumps(document, sort_keys=True)

    @staticmethod
    def from_row(text: object, seq: object) -> State:
        try:
            document = json.loads(str(text))
            if document["state_version"] != STATE_VERSION:
                raise UnreadableState(f"its state has version {document['state_version']}, not {STATE_VERSION}")
            return State(
                seq=int(str(seq)),
                fingerprint=document["fingerprint"],
                sources={n: SourceState(s["version"], s["commit"]) for n, s in document["sources"].items()},
                storage_version=document["storage_version"],
                rows=document["rows"],
                distrusted=tuple(document["distrusted"]),
                is_empty_build=document["is_empty_build"],
            )
        except UnreadableState:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnreadableState(f"its state row cannot be read ({type(error).__name__}: {error})") from error


@dataclass(frozen=True)
class RowCounts:
    inserted: int | None = 0
    updated: int | None = 0
    deleted: int | None = 0

    def as_dict(self) -> dict[str, int | None]:
        return {"inserted": self.inserted, "updated": self.updated, "deleted": self.deleted}


@dataclass(frozen=True)
class SourceChange:
    """What happened to a source since the version in the state.

    Args:
        maintenance_only: only commits that move no data (OPTIMIZE, properties).
        insert_only: every commit only added rows.
        problem: why the change cannot be read, as the reason for a full refresh.
    """

    counts: RowCounts = field(default_factory=RowCounts)
    insert_only: bool = False
    maintenance_only: bool = False
    problem: str = ""


@dataclass(frozen=True)
class Pin:
    """The version of a source this refresh reads, and the change since the last one (None: unchanged)."""

    current: SourceState
    before: int | None = None
    change: SourceChange | None = None

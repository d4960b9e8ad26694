"""Tables without versions (parquet and the like): their files tell whether anything changed, not what."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.refresh.state import Pin, RowCounts, SourceChange, SourceState


def files_statement(name: RelationName) -> str:
    """Path, size and time of every file of the table."""
    return (
        "SELECT DISTINCT _metadata.file_path AS path, _metadata.file_size AS size, "
        f"_metadata.file_modification_time AS modified FROM {name}"
    )


def pin_files(name: RelationName, rows: Sequence[Mapping[str, Any]], recorded: SourceState | None) -> Pin:
    listing = "\n".join(sorted(f"{r['path']} {r['size']} {r['modified']}" for r in rows))
    current = SourceState(None, hashlib.sha256(listing.encode()).hexdigest()[:16])
    if recorded is None or recorded == current:
        return Pin(current)
    problem = f"source {name} is a table without versions and its files changed"
    return Pin(current, None, SourceChange(RowCounts(None, None, None), problem=problem))


def pin_unknown(name: RelationName, recorded: SourceState | None) -> Pin:
    """A table that shows neither versions nor files: every refresh must assume that it changed."""
    current = SourceState(None, "unknown")
    if recorded is None:
        return Pin(current)
    problem = f"source {name} has neither versions nor files that could tell whether it changed"
    return Pin(current, None, SourceChange(RowCounts(None, None, None), problem=problem))

"""Delta's change data feed: a full signed delta between two versions, as long as history is kept."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.cdc.commits import RENAMING, Commit, same_commit, total
from dbt_ivm.refresh.state import Pin, SourceChange, SourceState

#: Commits read at once; enough for the usual distance between two refreshes.
HISTORY_LIMIT = 10

FEED_PROPERTY = "delta.enableChangeDataFeed"


def enable_statement(name: RelationName) -> str:
    """The statement that turns the feed on."""
    return f"ALTER TABLE {name} SET TBLPROPERTIES ({FEED_PROPERTY} = true)"


def pin_source(name: RelationName, commits: Sequence[Commit], recorded: SourceState | None, feed_is_on: bool) -> Pin:
    """The version to read and the change since the recorded one.

    Args:
        commits: newest first; must reach back to the recorded version when that is known.
    """
    newest = commits[0]
    current = SourceState(newest.version, newest.token)
    if recorded is None:
        return Pin(current)
    if recorded.version is None:
        return Pin(current, None, SourceChange(problem=f"source {name} had no versions at the last refresh"))
    if recorded.version == newest.version and same_commit(recorded.commit, newest.token):
        return Pin(current, recorded.version)
    since = [c for c in commits if c.version > recorded.version]
    at = next((c for c in commits if c.version == recorded.version), None)
    if newest.version < recorded.version or (at is not None and not same_commit(at.token, recorded.commit)):
        return Pin(current, recorded.version, SourceChange(problem=f"source {name} was dropped and created again"))
    if at is None:
        problem = f"the history of source {name} no longer reaches back to version {recorded.version}"
        return Pin(current, recorded.version, SourceChange(problem=problem))
    problem = ""
    maintenance_only = all(c.is_maintenance for c in since)
    if not feed_is_on and not maintenance_only:
        problem = f"the change data feed of source {name} is off; turn it on with: {enable_statement(name)}"
    if any(c.operation in RENAMING for c in since):
        problem = f"columns of source {name} were renamed or dropped"
    volumes = [c.volume for c in since if not c.is_maintenance]
    volume = None if any(v is None for v in volumes) else sum(v or 0 for v in volumes)
    moving = [c for c in since if not c.is_maintenance]
    change = SourceChange(total(moving), all(c.only_inserts for c in moving), maintenance_only, problem, volume)
    return Pin(current, recorded.version, change)

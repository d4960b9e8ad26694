"""How a change is applied: one rule, from facts.

    the change only adds rows                         append                         of the view only keys are read
    rows without an identity                          merge                          tombstones could not name them
    meta.ivm.apply: merge | log                       merge | log                    asked for
    kept by log already                               log                            until asked otherwise
    fewer stored rows than LOG_FROM_ROWS              merge                          few files, plain reads
    else                                              log                            a MERGE reads the table it changes

A refresh of a table of more than LOOK_FROM_ROWS rows looks at the change first (keeping.py), to skip files.
No change is large enough to be answered by a rewrite yet.  LOG_FROM_ROWS lies below the smallest view for which a
merge was seen to cost twice a log (benchmarks/results/keys.md: 0.7 and 1.4 million rows); where the two break even is
not measured, and neither is LOOK_FROM_ROWS.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt_ivm.refresh.options import Options
from dbt_ivm.refresh.state import LOG_MODE, MERGE_MODE
from dbt_ivm.storage.layout import Layout

#: From this many stored rows on, refreshes go by log.
LOG_FROM_ROWS = 500_000
#: From this many stored rows on, a refresh looks at the change first.
LOOK_FROM_ROWS = 500_000


@dataclass(frozen=True)
class Choice:
    """``looks``: whether the refresh looks at the change first, to skip files; ``why`` is shown to the user."""

    mode: str
    looks: bool = False
    why: str = ""


def choose(options: Options, layout: Layout, current: str = MERGE_MODE, rows: int | None = None) -> Choice:
    """How the next refresh writes.

    Args:
        current: how the table is kept now; a table that is kept by log stays so.
        rows: stored rows, when known.

    """
    looks = rows is not None and rows >= LOOK_FROM_ROWS
    if not layout.can_log:
        return Choice(MERGE_MODE, looks, "stored rows have no identity that a tombstone could name")
    if options.apply == "merge":
        return Choice(MERGE_MODE, looks, "meta.ivm.apply is merge")
    if options.apply == "log":
        return Choice(LOG_MODE, looks, "meta.ivm.apply is log")
    if rows is not None and rows >= LOG_FROM_ROWS:
        return Choice(LOG_MODE, looks, f"the table has {rows:,} rows, from {LOG_FROM_ROWS:,} on a log is cheaper")
    if current == LOG_MODE:
        return Choice(LOG_MODE, looks, "the table is kept by log")
    size = "of unknown size" if rows is None else f"of {rows:,} rows"
    return Choice(MERGE_MODE, looks, f"the table is {size}; from {LOG_FROM_ROWS:,} on a log is cheaper")

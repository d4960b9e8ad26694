"""How a view's refreshes are written: merge while its table is small, by log from then on.

A MERGE reads the table it changes, an INSERT of rows and tombstones does not; a table without tombstones is read a
little faster.  Rows without an identity cannot be named by a tombstone: they are merged at any size.
"""

from __future__ import annotations

from dbt_ivm.refresh.options import Options
from dbt_ivm.refresh.state import LOG_MODE, MERGE_MODE
from dbt_ivm.storage.layout import Layout

#: From this many stored rows on, refreshes go by log (benchmarks/apply.py measures both).
LOG_FROM_ROWS = 2_000_000


def chosen_mode(options: Options, layout: Layout, current: str = MERGE_MODE, rows: int | None = None) -> str:
    """The mode of the next commit.

    Args:
        current: the table's mode now; a table that is kept by log stays so.
        rows: stored rows, when known.
    """
    if not layout.can_log or options.apply == "merge":
        return MERGE_MODE
    is_large = rows is not None and rows >= LOG_FROM_ROWS
    return LOG_MODE if options.apply == "log" or current == LOG_MODE or is_large else MERGE_MODE

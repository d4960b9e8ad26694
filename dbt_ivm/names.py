"""Every reserved name, with the reason it exists.  Nothing else in the package spells them out."""

from __future__ import annotations

#: All columns and relations the package adds start like this; a model may not use the prefix.
PREFIX = "__ivm_"

#: The storage table of model ``m`` is ``m__ivm``; ``m`` itself is a view over it.
STORAGE_SUFFIX = "__ivm"

#: A subtree of model ``m`` that is kept as a view of its own is ``m__ivm_aux_<n>``.
AUXILIARY_SUFFIX = "__ivm_aux_"

#: Multiplicity of a row in a delta plan: +n added, -n removed.
WEIGHT = "__ivm_weight"

#: Partition of a storage row: data, state or tombstone.  Partitioning keeps the state in tiny files.
PART = "__ivm_part"
DATA_PART = 0
STATE_PART = 1
TOMBSTONE_PART = 2

#: The state as JSON on state rows; on tombstones what happened to the row (updated, deleted); null on data rows.
STATE = "__ivm_state"

#: On state rows: the refresh counter (compare-and-set).  On data rows: the refresh that wrote the row.
#: On tombstones: rows of the same identity with a smaller number are dead.
SEQ = "__ivm_seq"

#: Distinguishes equal rows of a bag written by one refresh; with SEQ it identifies a stored row.
ROW = "__ivm_row"

#: Rows of the input in a group; the group goes away when it reaches zero.
COUNT = "__ivm_count"

#: Added and removed rows per key in the source of a keyed MERGE.
ADDED = "__ivm_added"
REMOVED = "__ivm_removed"

#: The sequence number the refresh expects to find (compare-and-set).
EXPECTED = "__ivm_expected"

#: Whether a row that is looked up sees the other tables after the change (1) or before it (-1).
SIDE = "__ivm_side"

#: Which net supplement a row stands for; 0 is a changed row itself.
SUPPLEMENT = "__ivm_supplement"

#: Matches in the change, and in the stored rows.
MATCHES = "__ivm_matches"
STORED_MATCHES = "__ivm_stored_matches"

#: Smallest and largest weight of a changed key: below zero a row was removed, above zero one was inserted.
LOW = "__ivm_low"
HIGH = "__ivm_high"

#: The clock as a source (catalog/clock.py), and what it shows in a condition.
CLOCK = "__ivm_clock"

#: Stands in SELECT where only the number of rows matters.
NO_COLUMN = "__ivm_none"

#: True on groups whose values were computed anew instead of adjusted.
RECOMPUTED = "__ivm_recomputed"


def hidden(role: str, number: int) -> str:
    """A hidden storage column.

    >>> hidden("sum", 2)
    '__ivm_sum_2'
    """
    return f"{PREFIX}{role}_{number}"


def clock(kind: str) -> str:
    """Stands in a condition for what a clock shows.

    >>> clock("date")
    '__ivm_clock_date'
    """
    return f"{CLOCK}_{kind}"


def is_clock(name: str) -> bool:
    return name.startswith(f"{CLOCK}_")


def is_reserved(name: str) -> bool:
    """Whether a user may not use this column name.

    >>> is_reserved("__IVM_x"), is_reserved("ivm_x")
    (True, False)
    """
    return name.lower().startswith(PREFIX)

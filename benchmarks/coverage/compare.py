"""Are the rows that only one of two bags holds the same after all, up to the last digits of fractions?

What is left of each bag without the other comes here.  On DuckDB a stored average is a decimal where the engine's own
is a double, so equal values differ in their last digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

Row = tuple[object, ...]
RELATIVE, ABSOLUTE = 1e-6, 1e-4


def unmatched(left: Sequence[Row], right: Sequence[Row]) -> str:
    """A row without a partner on the other side, as text; empty when all rows have one.

    >>> unmatched([(1, 0.1), (1, 0.2)], [(1, 0.2), (1, 0.10000000001)]), unmatched([(1,)], [(1,), (1,)])
    ('', 'missing: (1,)')
    """
    fractions = _fraction_columns([*left, *right])
    only_left, only_right = (_by_exact_values(rows, fractions) for rows in (left, right))
    for key in sorted({*only_left, *only_right}, key=repr):
        ours, theirs = only_left.get(key, []), only_right.get(key, [])
        for row in ours:
            partner = next((r for r in theirs if _close(row, r)), None)
            if partner is None:
                return f"too many: {row}"
            theirs.remove(partner)
        if theirs:
            return f"missing: {theirs[0]}"
    return ""


def _fraction_columns(rows: Sequence[Row]) -> set[int]:
    """Columns that are a double on one side at least."""
    return {i for row in rows for i, value in enumerate(row) if isinstance(value, float)}


def _by_exact_values(rows: Sequence[Row], fractions: set[int]) -> dict[Row, list[Row]]:
    found: dict[Row, list[Row]] = {}
    for row in rows:
        key = tuple(v is None if i in fractions else v for i, v in enumerate(row))
        found.setdefault(key, []).append(row)
    return {key: sorted(same, key=repr) for key, same in found.items()}


def _close(left: Row, right: Row) -> bool:
    return all(_same(a, b) for a, b in zip(left, right, strict=True))


def _same(left: object, right: object) -> bool:
    if isinstance(left, (float, Decimal, int)) and isinstance(right, (float, Decimal, int)):
        return left == right or math.isclose(float(left), float(right), rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return left == right

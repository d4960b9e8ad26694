"""The range of every key column that a table has held, in its state: a key beyond it is new without a look.

Facts mostly come with growing keys.  The range is asked for with the first look at rows to append; Delta answers from
its statistics where the table has no deletion vectors.  It grows with each commit that knows which keys it adds: by
log, and into large tables by merge.  Others forget it.  Deleted keys stay within it, which costs a lookup at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from dbt_ivm.refresh.apply.staging import Bound

#: Smallest and largest value per column, as texts; columns of other types are left out.
Ranges = Mapping[str, tuple[str, str]]


def is_beyond(seen: Ranges | None, new: Iterable[Bound], with_nulls: frozenset[str]) -> bool:
    """Whether some column of all new keys lies outside of what was ever stored.

    >>> is_beyond({"id": ("1", "99")}, [Bound("id", "bigint", "100", "2000")], frozenset())
    True
    >>> is_beyond({"id": ("1", "99")}, [Bound("id", "bigint", "100", "2000")], frozenset({"id"}))
    False
    """
    for bound in new:
        if seen is None or bound.column not in seen or bound.column in with_nulls:
            continue
        low, high = (_value(text, bound.type) for text in seen[bound.column])
        if _value(bound.low, bound.type) > high or _value(bound.high, bound.type) < low:  # type: ignore[operator]
            return True
    return False


def widened(seen: Ranges, new: Iterable[Bound], has_new: bool) -> dict[str, tuple[str, str]]:
    """The range with these keys; a column whose new values are not told is not known any more.

    >>> widened({"id": ("1", "99"), "day": ("1", "2")}, [Bound("id", "bigint", "50", "200")], has_new=True)
    {'id': ('1', '200')}
    """
    if not has_new:
        return dict(seen)
    found = {}
    for bound in new:
        if bound.column in seen:
            low, high = seen[bound.column]
            texts = sorted((low, high, bound.low, bound.high), key=lambda text: _value(text, bound.type))  # type: ignore[arg-type,return-value]
            found[bound.column] = (texts[0], texts[-1])
    return found


def _value(text: str, kind: str) -> Decimal | str:
    """Compares as the engine does: numbers by value, texts by code point; dates of four-digit years as texts."""
    return text if kind in ("string", "date") else Decimal(text)

"""Are two relations the same bag of rows?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Run = Callable[[str], list[Any]]  # a statement to its rows
Checksum = tuple[Any, ...]


class Differs(AssertionError):
    pass


def checksum(run: Run, columns: Sequence[str], relation: str) -> Checksum:
    """Rows, sum and XOR of their hashes: two sums of 64 bits that agree by chance once in 10^19 bags or less often.

    Args:
        relation: a name or a query in parentheses.
    """
    (row,) = run(
        "select count(*), sum(cast(h as decimal(38,0))), bit_xor(h)"
        f" from (select xxhash64({', '.join(columns)}) as h from {relation})"
    )
    return tuple(row)


def difference(run: Run, columns: Sequence[str], relation: str, other: str) -> str:
    """A row that only one of the two has, by EXCEPT ALL both ways; empty when there is none."""
    one, two = (f"select {', '.join(columns)} from {side}" for side in (relation, other))
    for left, right, side in ((one, two, "too many"), (two, one, "missing")):
        rows = run(f"select * from ({left} except all {right}) limit 1")
        if rows:
            return f"{side}: {rows[0]}"
    return ""

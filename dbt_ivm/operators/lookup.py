"""One edge of a tree of lookups (lookup_tree.py), and how far the changed keys behind it reach."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from dbt_ivm.operators.scan import Scan

#: Which state of the tables a row sees that is looked up, and which rows a row of a looked-up table is shown to.
BOTH, AFTER, BEFORE = 0, 1, -1


class Reach(Enum):
    """Which changed keys of a table unchanged rows of the referencing one may have; the rest is new or gone.

    ALL       every changed key                       nothing is known but the key's columns
    REMOVED   removed keys, and inserted ones that    no row dangled before
              more than one row has now
    REPLACED  keys both removed and inserted          the foreign key holds before and after, keys are unique: trusted
    """

    ALL = "all"
    REMOVED = "removed"
    REPLACED = "replaced"


@dataclass(frozen=True)
class Lookup:
    """Member ``child`` is looked up from member ``parent``.

    Args:
        on: columns of parent and child that are equal.
        scan: the stored table below the child, whose change has the changed keys.
        scanned: the key's columns in that scan, in the order of ``on``.
        is_declared: a foreign key is declared along it.
        keeps: a row without a match stays, with NULLs: a left join, whose condition is ``condition``.
        is_unique: at most one row has and had a key: proven, seen in a look, or because the user said so.
        shows_all: each row that has the key is a match.
        is_partial: rows may reference nothing although every declared key holds.
    """

    parent: int
    child: int
    on: tuple[tuple[str, str], ...]
    scan: Scan
    scanned: tuple[str, ...]
    name: str
    reach: Reach = Reach.ALL
    is_declared: bool = False
    keeps: bool = False
    condition: tuple[exp.Expr, ...] = ()
    is_unique: bool = False
    shows_all: bool = True
    is_partial: bool = False

    @property
    def only_adds(self) -> bool:
        """Whether a row that comes to the child adds rows at most: whatever references it had a match before."""
        return not self.keeps or (self.shows_all and self.reach is not Reach.ALL)

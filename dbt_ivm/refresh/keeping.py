"""What a refresh computes first and keeps for its own moment, and what it learned by looking at it.

keep      CACHE TABLE name AS …      computed once, by name from then on
look      SELECT …                   a row of facts; the rest of the plan is made again with them
apply     MERGE | INSERT             the only commit
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_ivm import nodes
from dbt_ivm.refresh.apply.staging import Bound
from dbt_ivm.refresh.state import RowCounts
from dbt_ivm.render.query import in_one_task, sql_text

KEEP = "keep"
LOOK_AT_CHANGE, LOOK_AT_ROWS, LOOK_AT_STORED = "look at change", "look at rows", "look at stored rows"
APPLY, REWRITE = "apply", "rewrite"

_KEEP_HEAD = "CACHE TABLE {name} OPTIONS ('storageLevel' = 'MEMORY_AND_DISK') AS\n"
_VIEW_HEAD = "CREATE OR REPLACE TEMPORARY VIEW {name} AS\n"


@dataclass(frozen=True)
class Known:
    """Facts from looks; None: not looked yet.

    Args:
        bounds: of all rows of a change, or of the new keys among rows to append.
        new_nulls: key columns that are NULL in some new key.
        may_be_taken: whether some stored row, dead or live, has a new key.
        seen: the range of all stored keys.
    """

    bounds: tuple[Bound, ...] | None = None
    counts: RowCounts | None = None
    new_nulls: frozenset[str] = frozenset()
    may_be_taken: bool | None = None
    seen: dict[str, tuple[str, str]] | None = None


@dataclass(frozen=True)
class Keeping:
    """
    Args:
        name: begins the name of everything kept; no other refresh may use it at the same time.
        looks: whether the table is so large that a look at the change pays, to skip files.
    """

    name: str = "__ivm_kept"
    looks: bool = False
    known: Known = field(default_factory=Known)

    def learned(self, **facts: object) -> Keeping:
        return replace(self, known=replace(self.known, **facts))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Step:
    """One statement; ``kind`` says how to treat its result, ``name`` is what a keep is kept under."""

    kind: str
    purpose: str
    sql: str
    name: str = ""

    @property
    def is_look(self) -> bool:
        return self.kind in (LOOK_AT_CHANGE, LOOK_AT_ROWS, LOOK_AT_STORED)

    @property
    def without_keeping(self) -> str:
        """For an engine that keeps nothing: the same name, computed at every mention."""
        return _VIEW_HEAD.format(name=self.name) + self.sql.removeprefix(_KEEP_HEAD.format(name=self.name))


def keep_step(name: str, purpose: str, query: exp.Query, small: bool = False) -> Step:
    """
    Args:
        small: known to be few rows.  A small change of a dimension can be a large change of the view.
    """
    if small:
        query = in_one_task(exp.Select(expressions=[exp.Star()]).from_(nodes.aliased(query, "few"), copy=False))
    return Step(KEEP, purpose, _KEEP_HEAD.format(name=name) + sql_text(query), name)


def drop_statement(name: str) -> str:
    return f"DROP VIEW IF EXISTS {name}"

"""What a refresh computes first and keeps for its own moment, and what it learned by looking at it.

keep      CACHE TABLE name AS …      computed once, by name from then on
look      SELECT …                   a row of facts; the rest of the plan is made again with them
apply     MERGE | INSERT             the only commit
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlglot import exp

from dbt_ivm import nodes
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.operators.scan_values import TextRow
from dbt_ivm.refresh.apply.new_keys import NewKeys
from dbt_ivm.refresh.apply.staging import Bound
from dbt_ivm.refresh.foreign_keys import EdgeFacts
from dbt_ivm.refresh.state import RowCounts
from dbt_ivm.render.query import in_one_task, sql_text

KEEP = "keep"
LOOK_AT_CHANGE, LOOK_AT_ROWS, LOOK_AT_STORED = "look at change", "look at rows", "look at stored rows"
LOOK_AT_REFERENCES, FETCH = "look at references", "look at small changes"
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
        references: what became of each declared foreign key whose tables changed.
        carried: small changes of sources, fetched.
        new_keys: keys of a change that are new to the view.
    """

    bounds: tuple[Bound, ...] | None = None
    counts: RowCounts | None = None
    new_nulls: frozenset[str] = frozenset()
    may_be_taken: bool | None = None
    seen: dict[str, tuple[str, str]] | None = None
    references: Mapping[str, EdgeFacts] | None = None
    carried: Mapping[RelationName, tuple[TextRow, ...]] | None = None
    new_keys: NewKeys | None = None


@dataclass(frozen=True)
class Keeping:
    """
    Args:
        name: begins the name of everything kept; no other refresh may use it at the same time.
        looks: whether the table is so large that a look at the change pays, to skip files.
        fetches: whether small changes are fetched, so that the planner knows them.
        stepwise: plan only as far as it is known; explain shows the whole plan instead.
    """

    name: str = "__ivm_kept"
    looks: bool = False
    fetches: bool = True
    stepwise: bool = False
    known: Known = field(default_factory=Known)

    def waits_for_references(self, steps: Sequence[Step]) -> bool:
        """Whether a look among these steps must be answered before the rest is planned."""
        return self.stepwise and self.known.references is None and any(s.is_look for s in steps)

    def learned(self, **facts: object) -> Keeping:
        return replace(self, known=replace(self.known, **facts))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Step:
    """One statement; ``kind`` says how to treat its result, ``name`` is what a keep is kept under.

    Its text is made when it is asked for: a refresh is planned again after each look, and steps that were executed
    by then are not rendered again.
    """

    kind: str
    purpose: str
    text: str | Callable[[], str]
    name: str = ""

    @cached_property
    def sql(self) -> str:
        return self.text if isinstance(self.text, str) else self.text()

    @property
    def is_look(self) -> bool:
        return self.kind.startswith("look")

    @property
    def without_keeping(self) -> str:
        """For an engine that keeps nothing: the same name, computed at every mention."""
        return _VIEW_HEAD.format(name=self.name) + self.sql.removeprefix(_KEEP_HEAD.format(name=self.name))


def keep_step(name: str, purpose: str, query: Callable[[], exp.Query], small: bool = False) -> Step:
    """
    Args:
        small: known to be few rows.  A small change of a dimension can be a large change of the view.
    """

    def text() -> str:
        rows = query()
        if small:
            rows = in_one_task(exp.Select(expressions=[exp.Star()]).from_(nodes.aliased(rows, "few"), copy=False))
        return _KEEP_HEAD.format(name=name) + sql_text(rows)

    return Step(KEEP, purpose, text, name)


def drop_statement(name: str) -> str:
    return f"DROP VIEW IF EXISTS {name}"

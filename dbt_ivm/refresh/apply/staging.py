"""A change looked at before it is applied, so that files of the storage table can be skipped.

Delta skips files by literals only, and the keys of a change are known only after it was computed.  So the netted
change is kept for the moment of the refresh (CACHE TABLE … AS, computed once), looked at, and merged with what was
seen as literals:

    t.k IS NULL OR t.k BETWEEN 17 AND 21          identity columns
    t.day IS NULL OR t.day IN (…)                 columns the table is partitioned by, when there are few values

Safe because every row that the change can match has its columns within these bounds: stored rows are matched by
equality.  The state row has NULLs there, which is why NULL is always within.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.operators import Field, Operator, ScanKept
from dbt_ivm.types import decimal_of, is_integral

#: Up to this many values are listed; more become a range.
MOST_LISTED = 100
#: Delta keeps statistics of leading columns only, and each bound is one more comparison.
MOST_COLUMNS = 8

LOOK = f"{names.PREFIX}look"


@dataclass(frozen=True)
class Bound:
    """All values of one column in a change: listed, or between two."""

    column: str
    type: str
    low: str
    high: str
    values: tuple[str, ...] = ()

    def holds(self, table: str | None = None, column: str = "") -> exp.Expr:
        """The condition on a column of the storage table."""
        here = nodes.column(column or self.column, table)
        if self.values:
            within: exp.Expr = exp.In(this=here, expressions=[_literal(v, self.type) for v in self.values])
        else:
            within = exp.Between(this=here, low=_literal(self.low, self.type), high=_literal(self.high, self.type))
        return exp.Paren(this=exp.Or(this=exp.Is(this=here.copy(), expression=exp.Null()), expression=within))

    def __str__(self) -> str:
        return (
            f"{self.column} in {len(self.values)} values" if self.values else f"{self.column} {self.low}..{self.high}"
        )


@dataclass(frozen=True)
class Seen:
    """A column that is looked at: its range, or its values when they are few."""

    column: str
    type: str
    lists: bool = False


def prunable(change: Operator, listed: tuple[str, ...], ranged: tuple[str, ...]) -> tuple[Seen, ...]:
    """Candidates whose literals mean the same in Python, Spark and Delta's statistics."""
    candidates = {c: c in listed for c in (*listed, *ranged)}
    found = [Seen(c, change.types[c], lists) for c, lists in candidates.items() if is_prunable(change.types.get(c, ""))]
    return tuple(found[:MOST_COLUMNS])


def is_prunable(kind: str) -> bool:
    return is_integral(kind) or decimal_of(kind) is not None or kind in ("date", "string")


def kept_change(name: str, change: Operator) -> Operator:
    """The same rows as the change, read from where they are kept; the engine knows how many they are."""
    columns = (*((c.name, c.type) for c in change.columns if c.name != names.WEIGHT), (names.WEIGHT, "bigint"))
    return ScanKept(name, tuple(Field(n, n, t) for n, t in columns), "the change as computed")


def look_statement(staged: str, columns: tuple[Seen, ...], more: Mapping[str, exp.Expr]) -> exp.Select:
    """Smallest, largest and listed values per column, and more facts, as one JSON text: drivers convert nothing."""
    parts: list[exp.Expr] = []
    for seen in columns:
        value = nodes.column(seen.column)
        low, high = exp.Min(this=value), exp.Max(this=value.copy())
        facts: dict[str, exp.Expr] = {"low": nodes.cast(low, "string"), "high": nodes.cast(high, "string")}
        if seen.lists:
            facts["values"] = exp.Subquery(this=_listed(staged, seen.column))
        pairs = [part for name, fact in facts.items() for part in (exp.Literal.string(name), fact)]
        parts += [exp.Literal.string(seen.column), exp.Anonymous(this="NAMED_STRUCT", expressions=pairs)]
    parts += [part for name, fact in more.items() for part in (exp.Literal.string(name), fact)]
    every = exp.Anonymous(this="TO_JSON", expressions=[exp.Anonymous(this="NAMED_STRUCT", expressions=parts)])
    select = exp.Select(expressions=[exp.Alias(this=every, alias=nodes.name(LOOK))])
    return select.from_(RelationName((staged,)).table(), copy=False)


def _listed(staged: str, column: str) -> exp.Select:
    """One value more than are listed is enough to know that they are too many."""
    value = nodes.column(column)
    some = exp.Select(expressions=[exp.Alias(this=value, alias=nodes.name("value"))], distinct=exp.Distinct())
    some = some.from_(RelationName((staged,)).table(), copy=False)
    some = some.where(exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null())), copy=False)
    some = some.limit(MOST_LISTED + 1, copy=False)
    collected = exp.Anonymous(this="COLLECT_LIST", expressions=[nodes.cast(nodes.column("value"), "string")])
    ordered = exp.Anonymous(this="ARRAY_SORT", expressions=[collected])
    return exp.Select(expressions=[ordered]).from_(nodes.aliased(some, "few"), copy=False)


def read_bounds(text: str, columns: tuple[Seen, ...]) -> tuple[Bound, ...]:
    """Bounds of the columns that have values at all; a column with NULLs only is bound by nothing.

    >>> read_bounds('{"k": {"low": "3", "high": "9", "values": ["3", "9"]}}', (Seen("k", "bigint", True),))[0].values
    ('3', '9')
    """
    looked = json.loads(text)
    bounds = []
    for column, kind in ((s.column, s.type) for s in columns):
        facts = looked.get(column) or {}
        bound = read_bound(column, kind, facts.get("low"), facts.get("high"), tuple(facts.get("values") or ()))
        bounds += [bound] if bound else []
    return tuple(bounds)


def read_bound(column: str, kind: str, low: str | None, high: str | None, values: tuple[str, ...] = ()) -> Bound | None:
    """The bound, or None when there is no value or a text does not stand for exactly its value."""
    if low is None or high is None or not all(_is_exact(v, kind) for v in (low, high, *values)):
        return None
    return Bound(column, kind, low, high, values if len(values) <= MOST_LISTED else ())


def _is_exact(text: str, kind: str) -> bool:
    """Whether the text stands for exactly the value and sorts like it among its kind.

    An exponent would be read as a double, bad UTF-8 is replaced, years of five digits have a sign.
    """
    if kind == "string":
        return "\ufffd" not in text
    return len(text) == 10 and text[0].isdigit() if kind == "date" else "E" not in text


def _literal(text: str, kind: str) -> exp.Expr:
    if kind == "string":
        return nodes.text(text)
    if kind == "date":
        return nodes.cast(exp.Literal.string(text), "date")
    return exp.Neg(this=exp.Literal.number(text[1:])) if text.startswith("-") else exp.Literal.number(text)

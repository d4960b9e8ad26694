"""The netted change of a source, fetched when it is small and carried into the next statement as literals.

A change feed costs an engine much more to plan than its few rows are worth, at every mention.  One statement fetches
the small changes of all sources as texts; from then on planning knows them:

    no rows            the source did not change in what the view uses: its branch is not there
    rows               literals, and the changed keys of a referenced table are sorted out here

Only types whose texts give the value back exactly are carried.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.delta.kept import KeptChange
from dbt_ivm.delta.weights import WEIGHT_TYPE, net
from dbt_ivm.operators import Field, Operator, ScanValues
from dbt_ivm.operators.scan_values import TextRow
from dbt_ivm.render.query import as_text, render_query, sql_text

#: A source whose commits changed at most so many rows is fetched.
CARRIED_ROWS = 500

#: Exact as text, and equal texts are equal values: good for keys too.
DISCRETE = frozenset(("tinyint", "smallint", "int", "bigint", "boolean", "string", "date"))
#: Exact as text.
EXACT = DISCRETE | {"float", "double", "timestamp_ntz", "timestamp"}
DECIMAL = re.compile(r"decimal\(\d+,\d+\)$")

SOURCE, ROW = "source", "changed"


def is_carried(type_name: str) -> bool:
    return type_name in EXACT or bool(DECIMAL.match(type_name))


@dataclass(frozen=True)
class CarriedChange:
    """``rows`` are the values of ``change.fields`` as texts, the weight last."""

    change: KeptChange
    rows: tuple[TextRow, ...]

    @property
    def adds_only(self) -> bool:
        return all(_weight(row) > 0 for row in self.rows)

    @property
    def origin(self) -> tuple[RelationName, int]:
        return self.change.source, self.change.window.last

    @cached_property
    def position(self) -> Mapping[str, int]:
        return {f.column.lower(): i for i, f in enumerate(self.change.fields)}

    def change_of(self, fields: tuple[Field, ...]) -> Operator | None:
        """The netted change of a scan of these columns; None when nothing of them changed."""
        if not self.rows:
            return None
        places = [self.position[f.column.lower()] for f in fields]
        rows = tuple((*(row[p] for p in places), row[-1]) for row in self.rows)
        weight = Field(names.WEIGHT, names.WEIGHT, WEIGHT_TYPE)
        values = ScanValues((*fields, weight), rows, f"Changes of {self.change.source}", self.origin)
        return values if set(places) == set(self.position.values()) else net(values)

    def changed_keys(self, fields: Sequence[Field]) -> dict[TextRow, tuple[int, int]] | None:
        """Each changed key without NULLs and its smallest and largest weight; None where texts do not tell keys."""
        if any(f.type not in DISCRETE and not DECIMAL.match(f.type) for f in fields):
            return None
        places = [self.position[f.column.lower()] for f in fields]
        found: dict[TextRow, tuple[int, int]] = {}
        for row in self.rows:
            key, weight = tuple(row[p] for p in places), _weight(row)
            if None not in key:
                low, high = found.get(key, (weight, weight))
                found[key] = (min(low, weight), max(high, weight))
        return found


def fetch_statement(changes: Sequence[KeptChange], small: frozenset[str]) -> str:
    """One row per changed row: the number of its source, and its values as a JSON array of texts."""
    parts: list[exp.Query] = []
    for number, change in enumerate(changes, 1):
        rows = nodes.aliased(render_query(change.computed, small), "c")
        values = [as_text(nodes.column(f.name, "c"), f.type) for f in change.fields]
        values.append(as_text(nodes.column(names.WEIGHT, "c"), WEIGHT_TYPE))
        listed = exp.Anonymous(this="TO_JSON", expressions=[exp.Array(expressions=values)])
        parts.append(
            exp.Select(
                expressions=[
                    exp.Alias(this=exp.Literal.number(number), alias=nodes.name(SOURCE)),
                    exp.Alias(this=listed, alias=nodes.name(ROW)),
                ]
            ).from_(rows, copy=False)
        )
    query = parts[0]
    for part in parts[1:]:
        query = exp.union(query, part, distinct=False, copy=False)
    return sql_text(query)


def read_fetched(
    changes: Sequence[KeptChange], rows: Sequence[Mapping[str, Any]]
) -> dict[RelationName, tuple[TextRow, ...]]:
    """The fetched rows by source, in a stable order."""
    found: dict[RelationName, list[TextRow]] = {change.source: [] for change in changes}
    for row in rows:
        found[changes[int(row[SOURCE]) - 1].source].append(tuple(json.loads(row[ROW])))
    return {name: tuple(sorted(listed, key=repr)) for name, listed in found.items()}


def is_exact(rows: Sequence[TextRow]) -> bool:
    """Whether all texts arrived as they were sent; bytes that are no UTF-8 did not."""
    return not any("\ufffd" in value for row in rows for value in row if value)


def _weight(row: TextRow) -> int:
    return int(row[-1] or 0)

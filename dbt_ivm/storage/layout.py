"""The storage table of a view.  Which of five shapes it has depends on the view's root:

GROUPS      an aggregate whose measures can be adjusted; identity = the group columns
RECOMPUTED  an aggregate with some measure that cannot; affected groups are computed anew
KEYED       rows identified by declared keys of the tables; updates and deletes by key
BAG         no key: one stored row per row, told apart by (refresh, row number)
OPAQUE      no incremental plan; the query's rows as they are, rebuilt in full
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from dbt_ivm import names
from dbt_ivm.analysis.identity import identify
from dbt_ivm.analysis.outer_join_view import carrying, outer_join_view
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Key, Table
from dbt_ivm.comparable import is_comparable
from dbt_ivm.nodes import replace_columns
from dbt_ivm.operators import Aggregate, Filter, Operator, Project, Projection, col
from dbt_ivm.storage.measures import StoredMeasures, store_measures
from dbt_ivm.types import is_storable

#: Names that can be listed in a table property.
SIMPLE_NAME = re.compile(r"\w+$")


class Shape(Enum):
    GROUPS = "groups"
    RECOMPUTED = "recomputed groups"
    KEYED = "keyed rows"
    BAG = "bag"
    OPAQUE = "opaque"


@dataclass(frozen=True)
class Layout:
    """``rows`` computes the stored columns; ``facade`` turns them into the query's columns."""

    shape: Shape
    rows: Operator | None
    identity: tuple[str, ...]
    facade: tuple[Projection, ...]
    facade_filter: exp.Expr | None = None
    measures: StoredMeasures | None = None
    relied_on: tuple[tuple[RelationName, Key], ...] = ()

    @property
    def stored(self) -> tuple[str, ...]:
        """Stored columns without the bookkeeping ones every storage table has."""
        return self.rows.column_names if self.rows is not None else tuple(p.name for p in self.facade)

    @property
    def types(self) -> dict[str, str]:
        """Types of the stored columns, as far as they are known."""
        return self.rows.types if self.rows is not None else {}

    @property
    def can_log(self) -> bool:
        """Whether stored rows have an identity that tombstones can name."""
        keyed = self.shape in (Shape.KEYED, Shape.GROUPS, Shape.RECOMPUTED)
        plain = all(SIMPLE_NAME.match(c) and is_comparable(self.types[c]) for c in self.identity)
        return keyed and bool(self.identity) and plain

    @property
    def payload(self) -> tuple[str, ...]:
        return tuple(n for n in self.stored if n not in self.identity)

    @property
    def aggregate(self) -> Aggregate:
        assert isinstance(self.rows, Aggregate)
        return self.rows


def opaque_layout(visible: tuple[str, ...]) -> Layout:
    return Layout(Shape.OPAQUE, None, (), tuple(Projection(n, col(n)) for n in visible))


def choose_layout(
    plan: Operator, tables: tuple[Table, ...], fast_float_sums: bool = False, supplements: bool = False
) -> Layout:
    """
    Args:
        supplements: whether rows also tell which of them outer joins match by what (optimizer/net_supplements.py).
    """
    root = _peel(plan)
    if root is not None:
        groups = _groups(root, fast_float_sums)
        if _is_storable(groups):
            return groups
    joined = outer_join_view(plan) if supplements else None
    tells = joined is not None and not joined.unsupported
    identified = identify(plan, tables, marks=tells)
    if identified is None or not all(is_storable(c.type) for c in identified.plan.columns):
        facade = tuple(Projection(n, col(n)) for n in plan.column_names)
        return Layout(Shape.BAG, plan, (), facade)
    rows = identified.plan
    hidden = [n for n in rows.column_names if n not in plan.column_names]
    stored = {n: names.hidden("key", i) for i, n in enumerate(hidden, 1)}
    marked = outer_join_view(rows) if tells else None
    if marked is not None:
        known = rows.column_names
        rows = carrying(rows, marked.told_by())
        added = [n for n in rows.column_names if n not in known]
        stored |= {n: names.hidden("matched", i) for i, n in enumerate(added, 1)}
    projections = tuple(Projection(stored.get(n, n), col(n)) for n in rows.column_names)
    return Layout(
        Shape.KEYED,
        Project(rows, projections),
        tuple(stored.get(k, k) for k in identified.key),
        tuple(Projection(n, col(n)) for n in plan.column_names),
        relied_on=identified.relied_on,
    )


def _is_storable(layout: Layout) -> bool:
    """Delta stores no intervals and no collated strings; of groups with one, what the query makes of it."""
    partials = layout.measures.partials if layout.measures is not None else ()
    return all(is_storable(kind) for kind in (*layout.types.values(), *(p.type for p in partials)))


@dataclass(frozen=True)
class _Root:
    """An aggregate under projections and filters, which move into the facade."""

    aggregate: Aggregate
    outputs: dict[str, exp.Expr]
    conditions: tuple[exp.Expr, ...]


def _peel(plan: Operator) -> _Root | None:
    outputs: dict[str, exp.Expr] = {n: col(n) for n in plan.column_names}
    conditions: list[exp.Expr] = []
    while isinstance(plan, (Project, Filter)):
        if isinstance(plan, Filter):
            conditions.append(plan.predicate)
        else:
            made_of = {p.name: p.expression for p in plan.projections}
            outputs = {n: replace_columns(e, made_of) for n, e in outputs.items()}
            conditions = [replace_columns(c, made_of) for c in conditions]
        plan = plan.input
    return _Root(plan, outputs, tuple(conditions)) if isinstance(plan, Aggregate) else None


def _groups(root: _Root, fast_float_sums: bool) -> Layout:
    aggregate = root.aggregate
    visible = {e.name: n for n, e in reversed(list(root.outputs.items())) if isinstance(e, exp.Column)}
    group = {g: visible.get(g) or names.hidden("key", i) for i, g in enumerate(aggregate.group, 1)}
    stored = store_measures(aggregate, group, fast_float_sums)
    made_of: dict[str, exp.Expr] = {g: col(s) for g, s in group.items()} | stored.values
    condition = exp.and_(*root.conditions) if root.conditions else None
    return Layout(
        Shape.GROUPS if stored.adjustable else Shape.RECOMPUTED,
        stored.aggregate,
        tuple(group.values()),
        tuple(Projection(n, replace_columns(e, made_of)) for n, e in root.outputs.items()),
        replace_columns(condition, made_of) if condition is not None else None,
        measures=stored,
    )

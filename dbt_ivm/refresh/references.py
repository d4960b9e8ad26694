"""A look at declared foreign keys before a commit: rows that reference nothing, replaced and doubled keys.

    dangling' = dangling + Σ weights of rows of ΔR* that find no match on their own side (after or before the change)

ΔR* are the rows of the referencing table that are looked up anyway (operators/lookup_tree.py).  Where nothing was
counted before, all rows after the change are counted.  Per edge one pass: everything that is known about a key is put
side by side and added up, so the referenced table is read once and joined with nothing.

    key   rows after   rows before   referenced rows now   change of referenced rows
    7     +2           0             0                     −1                           two rows lost their match
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.delta.context import DeltaContext
from dbt_ivm.delta.touched import inserted_keys, is_known, is_replaced, key_names, renaming, replaced_keys, rows_with
from dbt_ivm.operators import Aggregate, Filter, Lookup, Measure, Operator, Project, Projection, UnionAll, col
from dbt_ivm.operators.lookup import AFTER, BEFORE
from dbt_ivm.operators.lookup_tree import with_column
from dbt_ivm.refresh.foreign_keys import DeclaredEdge, EdgeFacts
from dbt_ivm.render.merge import case, coalesce, equal, number
from dbt_ivm.render.query import render_side_by_side, sql_text

#: What is added up per key.
ROWS_AFTER, ROWS_BEFORE, REFERENCED, CHANGED = (
    f"{names.PREFIX}{name}" for name in ("rows_after", "rows_before", "referenced", "changed")
)
FACTS = ("dangling", "replaced", "doubled", "repeated")


def reference_queries(
    deltas: DeltaContext, edges: Sequence[DeclaredEdge], counted: Mapping[str, int]
) -> list[Operator]:
    """What has to be asked, as plans of one row each; nothing where the planner knows all.

    Args:
        counted: rows that referenced nothing before, for the edges where that is known.
    """
    queries: list[Operator] = []
    for position, edge in enumerate(edges, 1):
        lookup, is_counted = edge.lookup, edge.name in counted
        rows = edge.tree.looked_up(deltas, lookup.parent) if is_counted else _every_row(deltas, edge)
        new = inserted_keys(deltas, lookup)
        if rows is not None or new is not None or not isinstance(replaced_keys(deltas, lookup), int):
            queries.append(_facts(deltas, lookup, rows, new, is_counted, position))
    return queries


def look_at_references(queries: Sequence[Operator], small: frozenset[str]) -> str:
    return sql_text(render_side_by_side(queries, small))


def read_references(
    deltas: DeltaContext, edges: Sequence[DeclaredEdge], row: Mapping[str, Any]
) -> dict[str, EdgeFacts]:
    """What that row says, and what the planner knew without it."""

    def facts(position: int, edge: DeclaredEdge) -> EdgeFacts:
        dangling, replaced, doubled, repeated = (int(row.get(f"{fact}_{position}") or 0) for fact in FACTS)
        known = replaced_keys(deltas, edge.lookup)
        replaced = known if isinstance(known, int) else replaced
        is_once = f"repeated_{position}" in row and repeated == 0
        return EdgeFacts(dangling, replaced, doubled, str(row.get(f"example_{position}") or ""), is_once)

    return {edge.name: facts(position, edge) for position, edge in enumerate(edges, 1)}


def _facts(
    deltas: DeltaContext, lookup: Lookup, rows: Operator | None, new: Operator | None, is_counted: bool, position: int
) -> Operator:
    """One row about one edge."""
    key = key_names(lookup)
    parts: list[Operator] = []
    wanted: list[Operator] = [] if new is None else [new]
    if rows is not None:
        columns = tuple(p for p, _ in lookup.on)
        known = Filter(rows, exp.and_(*(is_known(c) for c in columns)))
        wanted.append(Project(known, renaming(columns, key)))
        sides = {ROWS_AFTER: _of_side(AFTER), ROWS_BEFORE: _of_side(BEFORE)}
        parts.append(_part(known, columns, key, sides))
    if is_counted:
        every = wanted[0] if len(wanted) == 1 else UnionAll(tuple(wanted))
        there = rows_with(deltas, lookup, every) if wanted else None
    else:
        there = Project.keeping(deltas.post_of(lookup.scan), tuple(dict.fromkeys(lookup.scanned)))
    if there is not None:
        parts.append(_part(there, lookup.scanned, key, {REFERENCED: nodes.cast(number(1), "bigint")}))
    change = deltas.delta_of(lookup.scan)
    if change is not None:
        known = Filter(change, exp.and_(*(is_known(c) for c in lookup.scanned)))
        parts.append(_part(known, lookup.scanned, key, {CHANGED: col(names.WEIGHT)}))
    together = parts[0] if len(parts) == 1 else UnionAll(tuple(parts))
    sums = [
        Measure(n, coalesce(exp.Sum(this=col(n)), number(0)), "bigint")
        for n in (ROWS_AFTER, ROWS_BEFORE, REFERENCED, CHANGED)
    ]
    low = Measure(names.LOW, exp.Min(this=col(CHANGED)), "bigint")
    high = Measure(names.HIGH, exp.Max(this=col(CHANGED)), "bigint")
    per_key = Aggregate(together, key, (*sums, low, high))
    return Aggregate(per_key, (), _measures(lookup, position), is_global=True)


def _measures(lookup: Lookup, position: int) -> tuple[Measure, ...]:
    def total(value: exp.Expr, name: str) -> Measure:
        return Measure(f"{name}_{position}", exp.Sum(this=value), "bigint")

    def is_less(left: exp.Expr, right: exp.Expr) -> exp.Expr:
        return exp.LT(this=left, expression=right)

    none_after = exp.LTE(this=col(REFERENCED), expression=number(0))
    had = exp.Sub(this=col(REFERENCED), expression=col(CHANGED))
    none_before = exp.LTE(this=had, expression=number(0))
    dangling = exp.Add(
        this=case(none_after, col(ROWS_AFTER), number(0)), expression=case(none_before, col(ROWS_BEFORE), number(0))
    )
    replaced = is_replaced()
    doubled = exp.and_(is_less(number(0), col(names.LOW)), is_less(number(1), col(REFERENCED)))
    is_wanted = exp.or_(*(exp.NEQ(this=col(n), expression=number(0)) for n in (ROWS_AFTER, ROWS_BEFORE)))
    repeated = exp.and_(is_wanted, exp.or_(*(is_less(number(1), n.copy()) for n in (col(REFERENCED), had))))
    lost = exp.and_(none_after.copy(), is_less(number(0), col(ROWS_AFTER)))
    return (
        total(dangling, "dangling"),
        total(case(replaced, number(1), number(0)), "replaced"),
        total(case(doubled, number(1), number(0)), "doubled"),
        total(case(repeated, number(1), number(0)), "repeated"),
        Measure(f"example_{position}", exp.Max(this=case(lost, _as_json(lookup))), "string"),
    )


def _part(rows: Operator, columns: tuple[str, ...], key: tuple[str, ...], values: Mapping[str, exp.Expr]) -> Operator:
    """The keys of these rows with what they add; NULL for what they say nothing about."""
    shown = [
        Projection(n, values[n] if n in values else nodes.null("bigint"))
        for n in (ROWS_AFTER, ROWS_BEFORE, REFERENCED, CHANGED)
    ]
    return Project(rows, (*renaming(columns, key), *shown))


def _of_side(side: int) -> exp.Expr:
    return case(equal(col(names.SIDE), number(side)), col(names.WEIGHT), number(0))


def _every_row(deltas: DeltaContext, edge: DeclaredEdge) -> Operator:
    after = deltas.post_of(edge.tree.members[edge.lookup.parent])
    return with_column(with_column(after, names.WEIGHT, nodes.cast(number(1), "bigint")), names.SIDE, number(AFTER))


def _as_json(lookup: Lookup) -> exp.Expr:
    """The key under the names of the referencing columns, as the edge's name spells them."""
    inside = lookup.name.split(" -> ")[0]
    spelled = inside[inside.index("(") + 1 : inside.rindex(")")].split(", ")
    pairs = zip(spelled, key_names(lookup), strict=True)
    struct = [part for column, key in pairs for part in (exp.Literal.string(column), col(key))]
    return exp.Anonymous(this="TO_JSON", expressions=[exp.Anonymous(this="NAMED_STRUCT", expressions=struct)])

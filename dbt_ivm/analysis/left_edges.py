"""Whether a left join is a lookup by a unique key, and from which rows: an edge that keeps the row that references.

The condition must hold the columns of a unique key of the right table equal to columns of one table on the left.  What
else it says about the right table only is a filter of that table; other conditions may use any columns around.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from sqlglot import exp

from dbt_ivm.analysis.join_graph import Edge, EqualColumns, Member, base_of, edge_between
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Table
from dbt_ivm.operators import Filter, Join, LeftJoin, Operator, references


@dataclass(frozen=True)
class LeftEdge:
    """``right`` is the table that is looked up, as far as the condition shows it; ``predicates`` the other conditions.

    Args:
        shows_all: every row of the table that has the key is a match.
    """

    edge: Edge
    right: Operator
    predicates: tuple[exp.Expr, ...]
    shows_all: bool


def left_edge(
    members: Sequence[Operator],
    always: tuple[exp.Expr, ...],
    join: LeftJoin,
    tables: Mapping[RelationName, Table],
) -> LeftEdge | None:
    """The edge from one of the members to the right side of a left join above them; None when it is no lookup.

    Args:
        always: conditions that hold for all rows of the members.
    """
    around = {n for m in members for n in m.column_names}
    own = set(join.right.column_names)
    if around & own or not {n for p in join.predicates for n in references(p)} <= around | own:
        return None
    alone = [p for p in join.predicates if references(p) and set(references(p)) <= own]
    predicates = tuple(p for p in join.predicates if p not in alone)
    right = Filter(join.right, exp.and_(*(p.copy() for p in alone))) if alone else join.right
    other = base_of(right)
    if other is None:
        return None
    equal = EqualColumns(Join((*members, right), (*always, *predicates)))
    bases = [base_of(m) for m in members]
    child = len(members)
    found = [
        edge
        for parent, rows in enumerate(members)
        if (edge := _edge(parent, rows, bases[parent], child, other, equal, tables)) is not None
    ]
    if not found:
        return None
    edge = min(found, key=lambda e: (e.foreign_key is None, e.parent))
    same = {frozenset(pair) for pair in edge.on}
    is_plain = len(predicates) == len(edge.on) and all(_sides(p) in same for p in predicates)
    return LeftEdge(edge, right, predicates, is_plain and not _is_filtered(right))


def _edge(
    parent: int,
    rows: Operator,
    base: Member | None,
    child: int,
    other: Member,
    equal: EqualColumns,
    tables: Mapping[RelationName, Table],
) -> Edge | None:
    if base is not None:
        members: list[Member | None] = [None] * (child + 1)
        members[parent], members[child] = base, other
        edge = edge_between(parent, child, members, equal, tables)
        if edge is not None:
            return edge
    return _from_any_rows(parent, rows, child, other, equal, tables)


def _from_any_rows(
    parent: int,
    rows: Operator,
    child: int,
    other: Member,
    equal: EqualColumns,
    tables: Mapping[RelationName, Table],
) -> Edge | None:
    """An edge from computed columns, or rows that are no table: groups, a union.  Nothing is declared about these."""
    for key in sorted(tables[other.scan.source].keys, key=lambda k: len(k.columns)):
        wanted = tuple(c.lower() for c in key.columns if c.lower() not in other.fixed)
        if not wanted or any(c not in other.columns for c in wanted):
            continue
        theirs = [other.columns[c] for c in wanted]
        ours = [next((n for n in rows.column_names if equal.determine(n, t)), "") for t in theirs]
        if all(ours):
            by_column = {f.column.lower(): f.name for f in other.scan.fields}
            name = f"rows({', '.join(ours)}) -> {other.scan.source}({', '.join(wanted)})"
            on = tuple(zip(ours, theirs, strict=True))
            return Edge(parent, child, on, other.scan, tuple(by_column[c] for c in wanted), key, None, name)
    return None


def _sides(predicate: exp.Expr) -> frozenset[str]:
    if isinstance(predicate, exp.EQ) and isinstance(predicate.this, exp.Column):
        return frozenset((predicate.this.name, predicate.expression.name))
    return frozenset()


def _is_filtered(plan: Operator) -> bool:
    return isinstance(plan, Filter) or any(_is_filtered(below) for below in plan.inputs)


def refers_to(join: LeftJoin, columns: Set[str]) -> bool:
    """Whether all that the condition uses of the left side is among the columns."""
    own = set(join.right.column_names)
    return {n for p in join.predicates for n in references(p)} - own <= columns

"""Which members of a join are looked up by a unique key of theirs, and from where: rooted trees of lookups.

An edge goes from the member that references to the member whose unique key is referenced.  It is found in equalities
of the join, also through others (a = b and b = c), and says whether a foreign key is declared along it.  Each member
is looked up from one other at most; members that are looked up from none are roots.  Equal values of different types
must be one to a row, too (one_equal.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import ForeignKey, Key, Table
from dbt_ivm.names import STORAGE_SUFFIX
from dbt_ivm.nodes import conjuncts
from dbt_ivm.one_equal import equals_one
from dbt_ivm.operators import Filter, Join, Operator, Project, Scan
from dbt_ivm.types import infer, is_integral


@dataclass(frozen=True)
class Member:
    """A stored table under filters and projections.

    Args:
        columns: stored column (lower case) to the member's column that shows it unchanged.
        fixed: stored columns that a filter holds at one value.
    """

    scan: Scan
    columns: Mapping[str, str]
    fixed: frozenset[str]


@dataclass(frozen=True)
class Edge:
    """Rows of ``parent`` reference rows of ``child`` by ``key``, at most one when the key holds.

    Args:
        on: columns of parent and child that are equal.
        scanned: the key's columns as the child's scan names them, in the order of ``on``.
        foreign_key: declared along this edge, or None.
    """

    parent: int
    child: int
    on: tuple[tuple[str, str], ...]
    scan: Scan
    scanned: tuple[str, ...]
    key: Key
    foreign_key: ForeignKey | None
    name: str

    @property
    def is_proven(self) -> bool:
        """The key of a storage table needs no declaration."""
        return self.key.origin == "storage"


@dataclass(frozen=True)
class JoinGraph:
    """``edges`` form trees; ``roots`` are the members that no edge leads to."""

    roots: tuple[int, ...]
    edges: tuple[Edge, ...]

    def below(self, position: int) -> tuple[Edge, ...]:
        return tuple(e for e in self.edges if e.parent == position)

    def tree(self, root: int) -> tuple[int, ...]:
        """The members of a root's tree, the root first."""
        return (root, *(p for e in self.below(root) for p in self.tree(e.child)))


def join_graph(join: Join, tables: Mapping[RelationName, Table]) -> JoinGraph:
    members = [base_of(m) for m in join.members]
    equal = EqualColumns(join)
    found: list[Edge] = []
    for parent, child in ((p, c) for p in range(len(members)) for c in range(len(members)) if p != c):
        edge = edge_between(parent, child, members, equal, tables)
        if edge is not None:
            found.append(edge)
    return _trees(len(members), found)


def base_of(member: Operator) -> Member | None:
    """The stored table below filters and projections, or None when the member is anything else."""
    fixed: set[str] = set()
    shown = {n: n for n in member.column_names}  # member's column to the column at this level
    while isinstance(member, (Filter, Project)):
        if isinstance(member, Filter):
            fixed |= fixed_columns(conjuncts(member.predicate), member.types)
        else:
            made = {p.name: p.expression.name for p in member.projections if p.is_reference}
            shown = {n: made[at] for n, at in shown.items() if at in made}
            fixed = {made[n] for n in fixed if n in made}
        member = member.input
    if not isinstance(member, Scan):
        return None
    stored = {f.name: f.column.lower() for f in member.fields}
    columns: dict[str, str] = {}
    for name, at in shown.items():
        columns.setdefault(stored[at], name)
    return Member(member, columns, frozenset(stored[n] for n in fixed))


def fixed_columns(conditions: Iterable[exp.Expr], types: Mapping[str, str]) -> set[str]:
    """Columns that the conditions hold at one value; several texts are equal to one number."""
    return {
        c.this.name
        for c in conditions
        if isinstance(c, exp.EQ)
        and isinstance(c.this, exp.Column)
        and isinstance(c.expression, exp.Literal)
        and equals_one(infer(c.expression, {}), types[c.this.name])
    }


class EqualColumns:
    """Columns that the join's predicates hold equal; through others only where all are of one type.

    ``direct``: pairs of columns in one predicate, where a value of the first equals one of the second at most.
    """

    def __init__(self, join: Join) -> None:
        types = join.types
        self.direct: set[tuple[str, str]] = set()
        self.leader: dict[str, str] = {}
        for predicate in join.predicates:
            sides = (predicate.this, predicate.expression) if isinstance(predicate, exp.EQ) else ()
            if len(sides) == 2 and all(isinstance(s, exp.Column) for s in sides):
                left, right = (s.name for s in sides)
                pairs = ((left, right), (right, left))
                self.direct.update((a, b) for a, b in pairs if equals_one(types[a], types[b]))
                if types[left] and types[left] == types[right]:
                    self.leader[self._lead(left)] = self._lead(right)

    def _lead(self, column: str) -> str:
        while self.leader.get(column, column) != column:
            column = self.leader[column]
        return column

    def determine(self, left: str, right: str) -> bool:
        """Whether rows with one value of the left column have one value of the right at most."""
        return (left, right) in self.direct or (left != right and self._lead(left) == self._lead(right))


def edge_between(
    parent: int,
    child: int,
    members: list[Member | None],
    equal: EqualColumns,
    tables: Mapping[RelationName, Table],
) -> Edge | None:
    """The edge between two members: along a foreign key if one is declared, else by any unique key."""
    rows, other = members[parent], members[child]
    if rows is None or other is None:
        return None
    table = tables[other.scan.source]
    declared = tables[rows.scan.source].foreign_keys
    for key in sorted(table.keys, key=lambda k: len(k.columns)):
        wanted = tuple(c.lower() for c in key.columns if c.lower() not in other.fixed)
        if not wanted or any(c not in other.columns for c in wanted):
            continue
        foreign = next((fk for fk in declared if _leads_to(fk, table, wanted)), None)
        for columns in (_along(foreign, wanted), None) if foreign else (None,):
            on = _pairs(rows, other, wanted, columns, equal)
            if on is not None:
                by_column = {f.column.lower(): f.name for f in other.scan.fields}
                scanned = tuple(by_column[c] for c in wanted)
                along = foreign if columns and _same_types(rows, other, on) else None
                name = along.stands_for if along is not None else ""
                name = name or edge_name(rows.scan, other.scan, on, members, parent, wanted, along)
                return Edge(parent, child, on, other.scan, scanned, key, along, name)
    return None


def _same_types(rows: Member, other: Member, on: tuple[tuple[str, str], ...]) -> bool:
    """Whether references and keys are values of one kind, which can be counted together."""
    here = {rows_name: f.type for f in rows.scan.fields if (rows_name := rows.columns.get(f.column.lower()))}
    there = {name: f.type for f in other.scan.fields if (name := other.columns.get(f.column.lower()))}
    pairs = [(here[p], there[c]) for p, c in on]
    return all(a == b or (is_integral(a) and is_integral(b)) for a, b in pairs)


def _leads_to(foreign: ForeignKey, table: Table, key: tuple[str, ...]) -> bool:
    """Whether a declared foreign key is about this key; one to a model means the table it is kept in."""
    same = foreign.to.matches(table.name) or foreign.to.sibling(foreign.to.name + STORAGE_SUFFIX).matches(table.name)
    return same and {c.lower() for c in foreign.to_columns} == set(key)


def _along(foreign: ForeignKey, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The referencing columns in the order of the key's."""
    by_key = {k.lower(): c.lower() for c, k in zip(foreign.columns, foreign.to_columns, strict=True)}
    return tuple(by_key[k] for k in wanted)


def _pairs(
    rows: Member, other: Member, wanted: tuple[str, ...], columns: tuple[str, ...] | None, equal: EqualColumns
) -> tuple[tuple[str, str], ...] | None:
    pairs = []
    for position, key_column in enumerate(wanted):
        theirs = other.columns[key_column]
        if columns is not None:
            candidates: Iterable[str] = [rows.columns[columns[position]]] if columns[position] in rows.columns else []
        else:
            candidates = rows.columns.values()
        matching = [c for c in candidates if equal.determine(c, theirs)]
        if not matching:
            return None
        pairs.append((min(matching, key=lambda c: (c, theirs) not in equal.direct), theirs))
    return tuple(pairs)


def edge_name(
    rows: Scan,
    other: Scan,
    on: tuple[tuple[str, str], ...],
    members: list[Member | None],
    parent: int,
    key: tuple[str, ...],
    foreign: ForeignKey | None,
) -> str:
    """``orders(customer_id) -> customer(id)``, with full names; a storage table goes by its model's."""
    member = members[parent]
    assert member is not None
    stored = {name: column for column, name in member.columns.items()}
    columns = _along(foreign, key) if foreign else tuple(stored[p] for p, _ in on)
    here, there = (str(scan.source).removesuffix(STORAGE_SUFFIX) for scan in (rows, other))
    return f"{here}({', '.join(columns)}) -> {there}({', '.join(key)})"


def _trees(count: int, found: list[Edge]) -> JoinGraph:
    """At most one edge into each member, and no cycle; declared foreign keys first.

    Members that nobody references are roots.  What is left over are cycles: the first member of one is its root.
    """
    into: dict[int, list[Edge]] = {}
    for edge in sorted(found, key=lambda e: (e.foreign_key is None, e.parent, e.child)):
        into.setdefault(edge.child, []).append(edge)
    chosen: dict[int, Edge] = {}
    roots = [m for m in range(count) if m not in into]
    reached = set(roots)

    def grow() -> None:
        grew = True
        while grew:
            grew = False
            for child in sorted(into):
                edge = next((e for e in into[child] if e.parent in reached), None)
                if child not in reached and edge is not None:
                    chosen[child] = edge
                    reached.add(child)
                    grew = True

    grow()
    for member in range(count):
        if member not in reached:
            roots.append(member)
            reached.add(member)
            grow()
    return JoinGraph(tuple(sorted(roots)), tuple(chosen[c] for c in sorted(chosen)))

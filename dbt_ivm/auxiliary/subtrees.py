"""Subtrees of a join along keys, each kept as a view of its own (``meta.ivm.auxiliary: subtrees``).

    R ⋈ S ⋈ T ⋈ U   along  R → S → T, R → U        A = S ⋈ T  with the key of S;   R ⋈ A ⋈ U   along  R → A, R → U

Safe: inner joins are associative, and A is read as it was after and before the change like any table.  Conditions on S
and T, and all of the join's conditions but the equalities of the edges inside, stay above A, so that A has every row of
S that finds its T.  A row of R finds nothing in A when its S finds no T; then R → A says less than R → S:

    total     every edge inside is a declared foreign key of NOT NULL columns:  R → S holds  ⇒  R → A holds
    partial   otherwise: counted under ``verify`` as any foreign key, but neither trusted nor reported as violated

See docs/optimizations/subtrees.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from sqlglot import exp

from dbt_ivm import names
from dbt_ivm.analysis.join_graph import Edge, JoinGraph, join_graph
from dbt_ivm.analysis.scans import scans_of, sources_of
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import ForeignKey, Key, Table, TableColumn
from dbt_ivm.nodes import conjuncts, replace_columns
from dbt_ivm.operators import Field, Filter, Join, Operator, Project, Projection, Scan, col, references
from dbt_ivm.operators.bottom_up import bottom_up
from dbt_ivm.storage.layout import SIMPLE_NAME


@dataclass(frozen=True)
class Subtree:
    """``table`` is how the plans above see it; ``rows`` computes its columns from ``tables``."""

    table: Table
    rows: Operator
    tables: tuple[Table, ...]

    @property
    def identity(self) -> tuple[str, ...]:
        return self.table.live


@dataclass(frozen=True)
class Split:
    """The plan over its subtrees; those that others read come first."""

    rows: Operator
    tables: tuple[Table, ...]
    subtrees: tuple[Subtree, ...] = ()


def split_subtrees(
    rows: Operator,
    tables: tuple[Table, ...],
    first_name: RelationName,
    prune: Callable[[Operator], Operator],
    allows_partial: bool = True,
) -> Split:
    """Keep every looked-up table that looks up others itself with all that is below it.

        Join (fact, dim, sub, other)   →   Join (fact, Project (Scan fact_view__ivm_aux_1), other)

    Args:
        first_name: subtrees are named like it, numbered.
        prune: leaves out what nobody above reads.
        allows_partial: also subtrees in which rows of the top may have no match.
    """
    splitting = _Splitting({t.name: t for t in tables}, first_name, allows_partial)
    above = bottom_up(rows, splitting.rule)
    if not splitting.found:
        return Split(rows, tables)
    above = prune(above)
    readers, done = [above], list[Subtree]()
    for kept in reversed(splitting.found):  # what others read comes after them here
        shown = {f.column for reader in readers for scan in scans_of(reader, kept.name) for f in scan.fields}
        columns = tuple(c for c in kept.join.column_names if c in shown or c in kept.identity)
        own = prune(Project.keeping(kept.join, columns))
        readers.append(own)
        known = splitting.tables | {kept.top.name: kept.top}
        read = tuple(known[n] for n in sources_of(own))
        listed = (*(TableColumn(c.name, c.type) for c in own.columns), TableColumn(names.PART, "int", False))
        done.append(Subtree(replace(splitting.tables[kept.name], columns=listed), own, read))
    final = splitting.tables | {s.table.name: s.table for s in done}
    done = [replace(s, tables=tuple(final[t.name] if t.name in _names(done) else t for t in s.tables)) for s in done]
    still, inside = sources_of(above), {n for s in done for n in sources_of(s.rows)}
    left = [final[t.name] for t in tables if t.name in still or t.name not in inside]
    return Split(above, (*left, *(final[n] for n in still if n in _names(done))), tuple(reversed(done)))


def _names(subtrees: Sequence[Subtree]) -> set[RelationName]:
    return {s.table.name for s in subtrees}


@dataclass(frozen=True)
class _Stack:
    """A stored table and the filters and projections above it, as expressions over the table's columns."""

    scan: Scan
    outputs: Mapping[str, exp.Expr]
    conditions: tuple[exp.Expr, ...]

    @staticmethod
    def of(member: Operator) -> _Stack:
        outputs: dict[str, exp.Expr] = {n: col(n) for n in member.column_names}
        conditions: list[exp.Expr] = []
        while isinstance(member, (Filter, Project)):
            if isinstance(member, Filter):
                conditions += conjuncts(member.predicate)
            else:
                made_of = {p.name: p.expression for p in member.projections}
                outputs = {n: replace_columns(e, made_of) for n, e in outputs.items()}
                conditions = [replace_columns(c, made_of) for c in conditions]
            member = member.input
        assert isinstance(member, Scan)
        return _Stack(member, outputs, tuple(conditions))

    @property
    def bookkeeping(self) -> frozenset[str]:
        """Columns that tell rows of a storage table from its state."""
        return frozenset(f.name for f in self.scan.fields if f.column.lower() == names.PART)

    def is_own(self, condition: exp.Expr) -> bool:
        """Whether the condition belongs to the stored table, not to the query."""
        return bool(set(references(condition)) & self.bookkeeping)


@dataclass(frozen=True)
class _Trees:
    """A join's trees of lookups; ``columns`` is what each column of a table is kept as."""

    graph: JoinGraph
    stacks: Mapping[int, _Stack]
    columns: Mapping[tuple[int, str], str]

    @staticmethod
    def of(join: Join, graph: JoinGraph) -> _Trees:
        along = sorted({p for e in graph.edges for p in (e.parent, e.child)})
        stacks = {p: _Stack.of(join.members[p]) for p in along}
        return _Trees(graph, stacks, _columns_apart(stacks))

    def source(self, position: int) -> RelationName:
        return self.stacks[position].scan.source

    def column(self, position: int, output: str) -> str:
        """What a member's column, shown unchanged, is kept as."""
        return self.columns[position, self.stacks[position].outputs[output].name]

    def kept_as(self, position: int) -> dict[str, exp.Expr]:
        return {f.name: col(self.columns[position, f.name]) for f in self.stacks[position].scan.fields}

    def own_rows(self, position: int) -> Operator:
        """The rows of a stored table, without the query's conditions."""
        stack = self.stacks[position]
        fields = tuple(replace(f, name=self.columns[position, f.name]) for f in stack.scan.fields)
        rows: Operator = replace(stack.scan, fields=fields)
        if not stack.bookkeeping:
            return rows
        own = [replace_columns(c, self.kept_as(position)) for c in stack.conditions if stack.is_own(c)]
        shown = tuple(self.columns[position, f.name] for f in stack.scan.fields if f.name not in stack.bookkeeping)
        return Project.keeping(Filter(rows, exp.and_(*own)) if own else rows, shown)


@dataclass(frozen=True)
class _Kept:
    """``top`` is the table that identifies the rows, with the key that does so first."""

    name: RelationName
    join: Join
    identity: tuple[str, ...]
    top: Table


class _Splitting:
    def __init__(self, tables: dict[RelationName, Table], first_name: RelationName, allows_partial: bool) -> None:
        self.tables = tables
        self.first_name = first_name
        self.allows_partial = allows_partial
        self.found: list[_Kept] = []

    def rule(self, operator: Operator, shared: Set[int]) -> Operator:
        if not isinstance(operator, Join):
            return operator
        trees = _Trees.of(operator, join_graph(operator, self.tables))
        graph = trees.graph
        members: dict[int, Operator] = dict(enumerate(operator.members))
        inside: list[Edge] = []
        for edge in (e for root in graph.roots for e in graph.below(root)):
            below = graph.tree(edge.child)[1:]
            if not below or not self._is_possible(trees, edge):
                continue
            members[edge.child] = self._member(trees, edge)
            for position in below:
                del members[position]
            inside += [e for e in graph.edges if e.child in below]
        if not inside:
            return operator
        rebuilt: Operator = Join(tuple(members.values()), _without_edges(operator.predicates, inside))
        if rebuilt.column_names != operator.column_names:
            rebuilt = Project.keeping(rebuilt, operator.column_names)
        return rebuilt

    # ------------------------------------------------------------------ which
    def _is_possible(self, trees: _Trees, top: Edge) -> bool:
        """Whether every row of the subtree is read at a version and told apart by whole keys under plain names."""
        edges = [top, *(e for p in trees.graph.tree(top.child) for e in trees.graph.below(p))]
        whole = all(len(e.scanned) == sum(c.lower() != names.PART for c in e.key.columns) for e in edges)
        plain = all(SIMPLE_NAME.match(c) for e in edges for c in e.scanned)
        versioned = all(self.tables[e.scan.source].versioned for e in edges)
        return whole and plain and versioned and (self.allows_partial or self._is_total(trees, top.child))

    def _is_total(self, trees: _Trees, position: int) -> bool:
        """Whether each row of a table finds all that is below it as long as declared keys hold."""
        table = self.tables[trees.source(position)]
        return all(
            e.foreign_key is not None
            and not e.foreign_key.is_partial
            and not any(table.column(c).nullable for c in e.foreign_key.columns)
            and self._is_total(trees, e.child)
            for e in trees.graph.below(position)
        )

    # ------------------------------------------------------------------ how
    def _member(self, trees: _Trees, edge: Edge) -> Operator:
        """What stands for the whole subtree in the join: the columns of all its members, under their conditions."""
        rows = self._keep(trees, edge)
        outputs: list[Projection] = []
        conditions: list[exp.Expr] = []
        for position in trees.graph.tree(edge.child):
            stack, kept_as = trees.stacks[position], trees.kept_as(position)
            conditions += [replace_columns(c, kept_as) for c in stack.conditions if not stack.is_own(c)]
            outputs += [Projection(n, replace_columns(e, kept_as)) for n, e in stack.outputs.items()]
        return Project(Filter(rows, exp.and_(*conditions)) if conditions else rows, tuple(outputs))

    def _keep(self, trees: _Trees, edge: Edge) -> Operator:
        """Add the subtree below an edge, those inside it first; its stored rows as others read them."""
        top, graph = edge.child, trees.graph
        members, predicates = [trees.own_rows(top)], list[exp.Expr]()
        for below in graph.below(top):
            members.append(self._keep(trees, below) if graph.below(below.child) else trees.own_rows(below.child))
            pairs = [(trees.column(top, here), trees.column(below.child, there)) for here, there in below.on]
            predicates += [exp.EQ(this=col(here), expression=col(there)) for here, there in pairs]
        joined = Join(tuple(members), tuple(predicates))
        name = self.first_name.sibling(f"{self.first_name.name}{len(self.found) + 1}")
        identity = tuple(trees.columns[top, field] for field in edge.scanned)
        self.tables[name] = Table(name, (), (Key((*identity, names.PART), "storage"),), live=identity)
        self._declare(trees, edge, name, identity)
        table = self.tables[edge.scan.source]
        first = replace(table, keys=(edge.key, *(k for k in table.keys if k != edge.key)))
        self.found.append(_Kept(name, joined, identity, first))
        part = Field(names.PART, names.PART, "int")
        scan = Scan(name, (*(Field(c.name, c.name, c.type) for c in joined.columns), part), live=identity)
        is_data = exp.EQ(this=col(names.PART), expression=exp.Literal.number(names.DATA_PART))
        return Project.keeping(Filter(scan, is_data), joined.column_names)

    def _declare(self, trees: _Trees, edge: Edge, name: RelationName, identity: tuple[str, ...]) -> None:
        """A foreign key to the table at the top is one to the subtree."""
        key = edge.foreign_key
        if key is None:
            return
        stored = {f.name: f.column.lower() for f in trees.stacks[edge.child].scan.fields}
        by_column = {stored[field]: c for field, c in zip(edge.scanned, identity, strict=True)}
        to_columns = tuple(by_column[c.lower()] for c in key.to_columns)
        partial = key.is_partial or not self._is_total(trees, edge.child)
        derived = ForeignKey(key.columns, name, to_columns, edge.name.split(" #")[0], partial)
        declaring = self.tables[trees.source(edge.parent)]
        self.tables[declaring.name] = replace(declaring, foreign_keys=(*declaring.foreign_keys, derived))


def _columns_apart(stacks: Mapping[int, _Stack]) -> dict[tuple[int, str], str]:
    """A column of its own for each column that some member reads; two mentions of one subquery share names."""
    found: dict[tuple[int, str], str] = {}
    for position, stack in stacks.items():
        for field in stack.scan.fields:
            name, number = field.name, 1
            while name in found.values() or name == names.PART:
                number += 1
                name = f"{field.name}_{number}"
            found[position, field.name] = name
    return found


def _without_edges(predicates: tuple[exp.Expr, ...], inside: Sequence[Edge]) -> tuple[exp.Expr, ...]:
    """The conditions without the equalities that hold inside anyway; one that others need to be connected stays."""
    pairs = {frozenset(pair): pair[1] for edge in inside for pair in edge.on}
    mentions = [set(references(p)) for p in predicates]

    def holds_inside(predicate: exp.Expr) -> bool:
        sides = (predicate.this, predicate.expression) if isinstance(predicate, exp.EQ) else ()
        if len(sides) != 2 or not all(isinstance(s, exp.Column) for s in sides):
            return False
        child = pairs.get(frozenset(s.name for s in sides))
        return child is not None and sum(child in m for m in mentions) == 1

    return tuple(p for p in predicates if not holds_inside(p))

"""One branch for tables that are looked up by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_ivm.analysis.join_graph import Edge, JoinGraph, join_graph
from dbt_ivm.analysis.left_edges import left_edge, refers_to
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Table
from dbt_ivm.nodes import replace_columns
from dbt_ivm.operators import (
    Filter,
    Join,
    LeftJoin,
    Lookup,
    LookupTree,
    Operator,
    PreservingJoin,
    Project,
    Projection,
    Reach,
    col,
    references,
)
from dbt_ivm.operators.bottom_up import bottom_up


def contract_lookups(
    plan: Operator,
    tables: Mapping[RelationName, Table],
    reach: Callable[[Edge], Reach] = lambda edge: Reach.ALL,
    kept: Mapping[str, str] | None = None,
    once: Set[str] = frozenset(),
) -> Operator:
    """Replace each rooted tree of lookups by one operator with one branch in the delta.

    Always safe: what is known about keys and foreign keys only sets how far a changed key reaches (LookupTree).
    Between several trees the join counts as before.  A left join along a key belongs to the tree of the rows it keeps,
    also below other joins that keep these rows: each of them looks at its own left row only.

        Join (fact, dim, sub, other)                 →   Join (LookupTree (fact → dim → sub), other)
        LeftJoin (LeftJoin (fact, dim), sub)         →   LookupTree (fact → dim → sub)
        LeftJoin (LeftJoin (Join (fact, dim), x), sub)   →   LeftJoin (LookupTree (fact → dim, fact → sub), x)

    Args:
        reach: how many of the changed keys behind an edge can matter.
        kept: where the rows to look up of a tree are kept, by the tree's name (``tree_name``).
        once: names of edges along which no key is looked up that several rows have or had.

    See docs/optimizations/contract_lookups.md.
    """
    contraction = Contraction(tables, reach, kept or {}, once)

    def rule(operator: Operator, shared: Set[int]) -> Operator:
        if isinstance(operator, Join):
            return contraction.of_join(operator)
        if isinstance(operator, LeftJoin):
            return contraction.of_left_join(operator, shared)
        return operator

    return bottom_up(plan, rule)


def tree_name(tree: LookupTree) -> str:
    """Names are unique within a plan, so first columns tell trees apart; a root may be a tree itself."""
    return f"{tree.members[0].column_names[0]} {tree.members[1].column_names[0]}"


def trees_in(plan: Operator) -> tuple[LookupTree, ...]:
    """Every tree of a contracted plan, each once."""
    found: dict[int, LookupTree] = {}

    def visit(operator: Operator) -> None:
        for below in operator.inputs:
            visit(below)
        if isinstance(operator, LookupTree):
            found.setdefault(id(operator), operator)

    visit(plan)
    return tuple(found.values())


@dataclass
class Contraction:
    """``named`` counts edges by name: a table that plays two roles in a plan has two edges."""

    tables: Mapping[RelationName, Table]
    reach: Callable[[Edge], Reach]
    kept: Mapping[str, str]
    once: Set[str]
    named: Counter[str] = field(default_factory=Counter)

    def of_join(self, join: Join) -> Operator:
        graph = join_graph(join, self.tables)
        if not graph.edges:
            return join
        members: list[Operator] = []
        inside: set[int] = set()
        lookups = self._lookups(graph)
        for root in graph.roots:
            order = graph.tree(root)
            if len(order) == 1:
                members.append(join.members[root])
                continue
            columns = {n for p in order for n in join.members[p].column_names}
            own = [i for i, p in enumerate(join.predicates) if set(references(p)) <= columns]
            inside.update(own)
            place = {position: number for number, position in enumerate(order)}
            placed = tuple(replace(lookups[p], parent=place[lookups[p].parent], child=place[p]) for p in order[1:])
            predicates = tuple(join.predicates[i] for i in own)
            members.append(self._tree(tuple(join.members[p] for p in order), placed, predicates))
        left = tuple(p for i, p in enumerate(join.predicates) if i not in inside)
        rebuilt: Operator = members[0] if len(members) == 1 and not left else Join(tuple(members), left)
        if rebuilt.column_names != join.column_names:
            rebuilt = Project.keeping(rebuilt, join.column_names)
        return rebuilt

    def of_left_join(self, join: LeftJoin, shared: Set[int]) -> Operator:
        """The join as one more lookup of the tree that has the rows it keeps; as it is when it is none."""
        found = self._looked_up(join.left, join, shared)
        if found is None:
            return join
        return found if found.column_names == join.column_names else Project.keeping(found, join.column_names)

    def _looked_up(self, rows: Operator, join: LeftJoin, shared: Set[int]) -> Operator | None:
        """The rows with the columns of the join's right side, as near to the tables as the join can be."""
        if not refers_to(join, set(rows.column_names)):
            return None
        if id(rows) in shared:
            return self._with_lookup(rows, join)
        if isinstance(rows, Join):
            return self._in_member(rows, join, shared)
        if isinstance(rows, PreservingJoin):
            below = self._looked_up(rows.left, join, shared)
            return rows.with_inputs((below, rows.right)) if below is not None else self._with_lookup(rows, join)
        if isinstance(rows, (Filter, Project)) and _has_tree(rows, shared):
            return self._below(rows, join, shared)
        return self._with_lookup(rows, join)

    def _in_member(self, rows: Join, join: LeftJoin, shared: Set[int]) -> Operator | None:
        for position, member in enumerate(rows.members):
            below = self._looked_up(member, join, shared)
            if below is not None:
                return Join((*rows.members[:position], below, *rows.members[position + 1 :]), rows.predicates)
        return self._with_lookup(rows, join)

    def _below(self, rows: Filter | Project, join: LeftJoin, shared: Set[int]) -> Operator | None:
        """Below a filter as it is; below a projection when that shows what the condition uses."""
        right = join.right.column_names
        if isinstance(rows, Filter):
            below = self._looked_up(rows.input, join, shared)
            return None if below is None else Filter(below, rows.predicate)
        shown = {p.name: p.expression.name for p in rows.projections if p.is_reference}
        if set(rows.input.column_names) & set(right) or not refers_to(join, set(shown)):
            return self._with_lookup(rows, join)
        made_of: dict[str, exp.Expr] = {**{n: col(o) for n, o in shown.items()}, **{n: col(n) for n in right}}
        renamed = LeftJoin(rows.input, join.right, tuple(replace_columns(p, made_of) for p in join.predicates))
        below = self._looked_up(rows.input, renamed, shared)
        return None if below is None else Project(below, (*rows.projections, *(Projection(n, col(n)) for n in right)))

    def _with_lookup(self, rows: Operator, join: LeftJoin) -> Operator | None:
        """The rows' tree with one member more; rows that are no tree become the root of one."""
        tree = rows if isinstance(rows, LookupTree) else None
        members = tree.members if tree is not None else (rows,)
        predicates = tree.predicates if tree is not None else ()
        found = left_edge(members, predicates, join, self.tables)
        if found is None:
            return None
        lookup = replace(self._lookup(found.edge), keeps=True, condition=found.predicates, shows_all=found.shows_all)
        before = tree.lookups if tree is not None else ()
        return self._tree((*members, found.right), (*before, lookup), predicates)

    def _tree(
        self, members: tuple[Operator, ...], lookups: tuple[Lookup, ...], predicates: tuple[exp.Expr, ...]
    ) -> LookupTree:
        tree = LookupTree(members, lookups, predicates)
        name = self.kept.get(tree_name(tree), "")
        return replace(tree, kept_as=name) if name else tree

    def _lookups(self, graph: JoinGraph) -> dict[int, Lookup]:
        return {edge.child: self._lookup(edge) for edge in graph.edges}

    def _lookup(self, edge: Edge) -> Lookup:
        self.named[edge.name] += 1
        number = self.named[edge.name]
        edge = edge if number == 1 else replace(edge, name=f"{edge.name} #{number}")
        reach = self.reach(edge)
        return Lookup(
            edge.parent,
            edge.child,
            edge.on,
            edge.scan,
            edge.scanned,
            edge.name,
            reach,
            is_declared=edge.foreign_key is not None,
            is_unique=edge.is_proven or reach is Reach.REPLACED or edge.name in self.once,
            is_partial=edge.foreign_key is not None and edge.foreign_key.is_partial,
        )


def _has_tree(rows: Operator, shared: Set[int]) -> bool:
    """Whether a tree, or a join that may have one, is right below filters and projections."""
    while isinstance(rows, (Filter, Project)) and id(rows) not in shared:
        rows = rows.input
    return isinstance(rows, (LookupTree, Join, PreservingJoin)) and id(rows) not in shared

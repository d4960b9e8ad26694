"""One branch for tables that are looked up by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import replace

from dbt_ivm.analysis.join_graph import Edge, JoinGraph, join_graph
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Table
from dbt_ivm.operators import Join, Lookup, LookupTree, Operator, Project, Reach, references
from dbt_ivm.operators.bottom_up import bottom_up


def contract_lookups(
    plan: Operator,
    tables: Mapping[RelationName, Table],
    reach: Callable[[Edge], Reach] = lambda edge: Reach.ALL,
    kept: Mapping[str, str] | None = None,
) -> Operator:
    """Replace each rooted tree of lookups in a join by one operator with one branch in the delta.

    Always safe: what is known about keys and foreign keys only sets how far a changed key reaches (LookupTree).
    Between several trees the join counts as before.

        Join (fact, dim, sub, other)   →   Join (LookupTree (fact → dim → sub), other)

    Args:
        reach: how many of the changed keys behind an edge can matter.
        kept: where the rows to look up of a tree are kept, by the tree's name (``tree_name``).

    See docs/optimizations/contract_lookups.md.
    """

    def rule(operator: Operator, shared: Set[int]) -> Operator:
        if not isinstance(operator, Join):
            return operator
        graph = join_graph(operator, tables)
        return _contract(operator, replace(graph, edges=_named_apart(graph.edges, used)), reach, kept or {})

    used: set[str] = set()
    return bottom_up(plan, rule)


def _named_apart(edges: tuple[Edge, ...], used: set[str]) -> tuple[Edge, ...]:
    """One foreign key in several joins of a view is an edge in each: rows that reference nothing are counted apart."""
    named = []
    for edge in edges:
        name, number = edge.name, 1
        while name in used:
            number += 1
            name = f"{edge.name.split(' #')[0]} #{number}"
        used.add(name)
        named.append(edge if name == edge.name else replace(edge, name=name))
    return tuple(named)


def tree_name(tree: LookupTree) -> str:
    """Names are unique within a plan, so the first column tells trees apart."""
    return tree.members[0].column_names[0]


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


def _lookup(edge: Edge, place: Mapping[int, int], reach: Callable[[Edge], Reach]) -> Lookup:
    declared = edge.foreign_key is not None
    parent, child = place[edge.parent], place[edge.child]
    return Lookup(parent, child, edge.on, edge.scan, edge.scanned, edge.name, reach(edge), declared)


def _contract(join: Join, graph: JoinGraph, reach: Callable[[Edge], Reach], kept: Mapping[str, str]) -> Operator:
    if not graph.edges:
        return join
    members: list[Operator] = []
    inside: set[int] = set()
    for root in graph.roots:
        order = graph.tree(root)
        if len(order) == 1:
            members.append(join.members[root])
            continue
        columns = {n for p in order for n in join.members[p].column_names}
        own = [i for i, p in enumerate(join.predicates) if set(references(p)) <= columns]
        inside.update(own)
        place = {position: number for number, position in enumerate(order)}
        by_child = {e.child: e for e in graph.edges}
        lookups = tuple(_lookup(e, place, reach) for e in (by_child[p] for p in order[1:]))
        tree = LookupTree(tuple(join.members[p] for p in order), lookups, tuple(join.predicates[i] for i in own))
        name = kept.get(tree_name(tree), "")
        members.append(LookupTree(tree.members, lookups, tree.predicates, name) if name else tree)
    left = tuple(p for i, p in enumerate(join.predicates) if i not in inside)
    rebuilt: Operator = members[0] if len(members) == 1 and not left else Join(tuple(members), left)
    if rebuilt.column_names != join.column_names:
        rebuilt = Project.keeping(rebuilt, join.column_names)
    return rebuilt

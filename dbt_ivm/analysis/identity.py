"""What identifies a row of a view: declared keys of its tables, carried to the top.

key(Scan T)      = a declared key of T            key(σ R)  = key(R)
key(π R)         = key(R), kept as hidden columns when not selected
key(R ⋈ S)       = key(R) ∪ key(S); key(R) alone when S is looked up from R by a unique key (join_graph.py)
key(γ R)         = the group columns
key(R ⊎ S)       = none (rows of both sides may agree)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dbt_ivm.analysis.join_graph import join_graph
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Key, Table
from dbt_ivm.operators import Aggregate, Filter, Join, OneRow, Operator, Project, Projection, Scan, UnionAll, col


@dataclass(frozen=True)
class Identified:
    """A plan that carries a key; ``relied_on`` are the declared keys that make it one."""

    plan: Operator
    key: tuple[str, ...]
    relied_on: tuple[tuple[RelationName, Key], ...] = ()


def identify(plan: Operator, tables: tuple[Table, ...]) -> Identified | None:
    """The plan with a key among its columns (added at the end when not selected), or None."""
    return _identify(plan, {t.name: t for t in tables})


def _identify(plan: Operator, tables: Mapping[RelationName, Table]) -> Identified | None:
    if isinstance(plan, Scan):
        return _scan(plan, tables[plan.source].keys if plan.source in tables else ())
    if isinstance(plan, OneRow):
        return Identified(plan, ())
    if isinstance(plan, Filter):
        below = _identify(plan.input, tables)
        return below and replace(below, plan=replace(plan, input=below.plan))
    if isinstance(plan, Project):
        below = _identify(plan.input, tables)
        return below and _project(plan, below)
    if isinstance(plan, Join):
        return _join(plan, tables)
    if isinstance(plan, Aggregate):
        return Identified(plan, plan.group)
    if isinstance(plan, UnionAll):
        return None
    return None


def _join(plan: Join, tables: Mapping[RelationName, Table]) -> Identified | None:
    """The keys of the roots; tables that are looked up from them by a unique key add nothing but that reliance."""
    graph = join_graph(plan, tables)
    members: list[Identified] = []
    for position, member in enumerate(plan.members):
        found = _identify(member, tables) if position in graph.roots else Identified(member, ())
        if found is None:
            return None
        members.append(found)
    members = _apart(plan, members)
    looked_up = [(e.scan.source, e.key) for e in graph.edges]
    return Identified(
        Join(tuple(m.plan for m in members), plan.predicates),
        tuple(k for m in members for k in m.key),
        tuple(dict.fromkeys([r for m in members for r in m.relied_on] + looked_up)),
    )


def _apart(join: Join, members: list[Identified]) -> list[Identified]:
    """Members without shared names: two mentions of one common table expression add the same key columns."""
    taken = set(join.column_names)
    apart = []
    for before, member in zip(join.members, members, strict=True):
        added = [n for n in member.plan.column_names if n not in before.column_names]
        new = {n: _unused(n, taken) for n in added}
        if any(n != o for o, n in new.items()):
            projections = tuple(Projection(new.get(n, n), col(n)) for n in member.plan.column_names)
            key = tuple(new.get(k, k) for k in member.key)
            member = replace(member, plan=Project(member.plan, projections), key=key)
        apart.append(member)
    return apart


def _unused(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_key{number}"
    taken.add(name)
    return name


def _scan(plan: Scan, declared: tuple[Key, ...]) -> Identified | None:
    by_column = {f.column.lower(): f.name for f in plan.fields}
    for key in sorted(declared, key=lambda k: len(k.columns)):
        if all(c.lower() in by_column for c in key.columns):
            columns = tuple(by_column[c.lower()] for c in key.columns)
            return Identified(plan, columns, ((plan.source, key),))
    return None


def _project(plan: Project, below: Identified) -> Identified:
    """Keep key columns under the name they are selected as, or add them."""
    projections = list(plan.projections)
    key: list[str] = []
    for column in below.key:
        selected = next((p.name for p in projections if p.is_reference and p.expression.name == column), None)
        if selected is None:
            taken = {p.name for p in projections}
            selected = _unused(column, taken)
            projections.append(Projection(selected, col(column)))
        key.append(selected)
    return replace(below, plan=Project(below.plan, tuple(projections)), key=tuple(key))

"""What identifies a row of a view: declared keys of its tables, carried to the top.

key(Scan T)      = a declared key of T            key(σ R)  = key(R)
key(π R)         = key(R), kept as hidden columns when not selected
key(R ⋈ S)       = key(R) ∪ key(S)                key(γ R)  = the group columns
key(R ⊎ S)       = none (rows of both sides may agree)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    keys = {t.name: t.keys for t in tables}
    return _identify(plan, keys)


def _identify(plan: Operator, keys: dict[RelationName, tuple[Key, ...]]) -> Identified | None:
    if isinstance(plan, Scan):
        return _scan(plan, keys.get(plan.source, ()))
    if isinstance(plan, OneRow):
        return Identified(plan, ())
    if isinstance(plan, Filter):
        below = _identify(plan.input, keys)
        return below and replace(below, plan=replace(plan, input=below.plan))
    if isinstance(plan, Project):
        below = _identify(plan.input, keys)
        return below and _project(plan, below)
    if isinstance(plan, Join):
        members = [_identify(m, keys) for m in plan.members]
        found = [m for m in members if m is not None]
        if len(found) < len(members):
            return None
        found = _apart(plan, found)
        key = tuple(k for m in found for k in m.key)
        relied_on = tuple(dict.fromkeys(r for m in found for r in m.relied_on))
        return Identified(Join(tuple(m.plan for m in found), plan.predicates), key, relied_on)
    if isinstance(plan, Aggregate):
        return Identified(plan, plan.group)
    if isinstance(plan, UnionAll):
        return None
    return None


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

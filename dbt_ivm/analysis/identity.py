"""What identifies a row of a view: declared keys of its tables, carried to the top.

key(Scan T)      = a declared key of T            key(σ R)  = key(R)
key(π R)         = key(R), kept as hidden columns when not selected
key(R ⋈ S)       = key(R) ∪ key(S); key(R) alone when S is looked up from R by a unique key (join_graph.py)
key(R ⟕ S)       = key(R) ∪ key(S); key(R) alone when the condition holds key(S) equal to columns of R or to constants
key(R ⟗ S)       = key(R) ∪ key(S), and which of both sides the row has
key(R ⋉ S), key(R ▷ S), key of a mark or of window functions over R = key(R)
key(ω R)         = key(R); without one the partition and the number that row_number() gives
key(σ R)         = the partition columns, where σ keeps one row of each partition (row_number() = 1)
key(γ R)         = the group columns
key(R ⊎ S)       = none (rows of both sides may agree)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from dbt_ivm.analysis.join_graph import fixed_columns, join_graph
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Key, Table
from dbt_ivm.nodes import conjuncts
from dbt_ivm.operators import (
    Aggregate,
    Clock,
    Existence,
    Filter,
    FullJoin,
    Generate,
    Join,
    LeftJoin,
    MovingFilter,
    OneRow,
    Operator,
    Project,
    Projection,
    Scan,
    Windowing,
    col,
)
from dbt_ivm.operators.preserving import one_key_each


@dataclass(frozen=True)
class Identified:
    """A plan that carries a key; ``relied_on`` are the declared keys that make it one."""

    plan: Operator
    key: tuple[str, ...]
    relied_on: tuple[tuple[RelationName, Key], ...] = ()


def identify(plan: Operator, tables: tuple[Table, ...], marks: bool = False) -> Identified | None:
    """The plan with a key among its columns (added at the end when not selected), or None.

    Args:
        marks: whether left joins whose rows have the keys of both sides also get a column that says which have a match.
    """
    return _identify(plan, _Facts({t.name: t for t in tables}, marks))


@dataclass(frozen=True)
class _Facts:
    tables: Mapping[RelationName, Table]
    marks: bool


def _identify(plan: Operator, facts: _Facts) -> Identified | None:
    if isinstance(plan, Scan):
        return _scan(plan, facts.tables[plan.source].keys if plan.source in facts.tables else ())
    if isinstance(plan, (OneRow, Clock)):
        return Identified(plan, ())
    if isinstance(plan, MovingFilter):
        below = _identify(plan.input, facts)
        return below and replace(below, plan=replace(plan, input=below.plan))
    if isinstance(plan, Filter):
        one_each = _partition_of_one(plan)
        if one_each is not None:
            return Identified(plan, one_each)
        below = _identify(plan.input, facts)
        return below and replace(below, plan=replace(plan, input=below.plan))
    if isinstance(plan, Project):
        below = _identify(plan.input, facts)
        return below and _project(plan, below)
    if isinstance(plan, Join):
        return _join(plan, facts)
    if isinstance(plan, LeftJoin):
        return _left_join(plan, facts)
    if isinstance(plan, FullJoin):
        return _full_join(plan, facts)
    if isinstance(plan, Existence):
        below = _identify(plan.left, facts)
        return below and replace(below, plan=replace(plan, left=below.plan))
    if isinstance(plan, Windowing):
        below = _identify(plan.input, facts)
        return replace(below, plan=replace(plan, input=below.plan)) if below is not None else _numbered(plan)
    if isinstance(plan, Generate) and plan.position:
        below = _identify(plan.input, facts)
        return below and replace(below, plan=replace(plan, input=below.plan), key=(*below.key, plan.position))
    if isinstance(plan, Aggregate):
        return Identified(plan, plan.group)
    return None


def _numbered(plan: Windowing) -> Identified | None:
    """No two rows of a partition have the same row_number."""
    number = next((f.name for f in plan.functions if isinstance(f.call.this, exp.RowNumber)), None)
    return Identified(plan, (*plan.partition, number)) if number is not None else None


def _partition_of_one(plan: Filter) -> tuple[str, ...] | None:
    """The partition columns, when the filter keeps one row of each partition only."""
    if not isinstance(plan.input, Windowing):
        return None
    functions = {f.name: f.call for f in plan.input.functions}
    for condition in conjuncts(plan.predicate):
        if not isinstance(condition, (exp.EQ, exp.LTE)) or not isinstance(condition.this, exp.Column):
            continue
        call, number = functions.get(condition.this.name), condition.expression
        is_one = isinstance(number, exp.Literal) and (isinstance(condition, exp.EQ) or number.name == "1")
        if call is not None and isinstance(call.this, exp.RowNumber) and is_one:
            return plan.input.partition
    return None


def _left_join(plan: LeftJoin, facts: _Facts) -> Identified | None:
    left, right = _identify(plan.left, facts), _identify(plan.right, facts)
    if left is None or right is None:
        return None
    relied_on = tuple(dict.fromkeys([*left.relied_on, *right.relied_on]))
    told = [one_key_each(p, plan.left, plan.right) for p in plan.pairs]
    matched = {p.right.name for p in told if p and isinstance(p.right, exp.Column)}
    matched |= fixed_columns(plan.predicates, {**plan.left.types, **plan.right.types})
    if set(right.key) <= matched:
        return Identified(replace(plan, left=left.plan), left.key, relied_on)
    sides = _apart((plan.left, plan.right), [left, _marked(right, in_key=False) if facts.marks else right])
    return Identified(replace(plan, left=sides[0].plan, right=sides[1].plan), (*sides[0].key, *sides[1].key), relied_on)


def _full_join(plan: FullJoin, facts: _Facts) -> Identified | None:
    """A row with NULL in its key and no match looks like no row, so which sides there are belongs to the key."""
    sides: list[Identified] = []
    for before in plan.inputs:
        found = _identify(before, facts)
        if found is None:
            return None
        sides.append(_marked(found, in_key=True))
    sides = _apart(plan.inputs, sides)
    return Identified(
        replace(plan, left=sides[0].plan, right=sides[1].plan),
        tuple(k for side in sides for k in side.key),
        tuple(dict.fromkeys(r for side in sides for r in side.relied_on)),
    )


def _marked(side: Identified, in_key: bool) -> Identified:
    """TRUE in every row of the side, so NULL where the side is missing."""
    present = _unused("is_present", set(side.plan.column_names))
    projections = (*(Projection(n, col(n)) for n in side.plan.column_names), Projection(present, exp.true()))
    return replace(side, plan=Project(side.plan, projections), key=(*side.key, present) if in_key else side.key)


def _join(plan: Join, facts: _Facts) -> Identified | None:
    """The keys of the roots; tables that are looked up from them by a unique key add nothing but that reliance."""
    graph = join_graph(plan, facts.tables)
    members: list[Identified] = []
    for position, member in enumerate(plan.members):
        found = _identify(member, facts) if position in graph.roots else Identified(member, ())
        if found is None:
            return None
        members.append(found)
    members = _apart(plan.members, members)
    looked_up = [(e.scan.source, e.key) for e in graph.edges]
    return Identified(
        Join(tuple(m.plan for m in members), plan.predicates),
        tuple(k for m in members for k in m.key),
        tuple(dict.fromkeys([r for m in members for r in m.relied_on] + looked_up)),
    )


def _apart(sides: tuple[Operator, ...], members: list[Identified]) -> list[Identified]:
    """Members without shared names: two mentions of one common table expression add the same key columns."""
    taken = {n for side in sides for n in side.column_names}
    apart = []
    for before, member in zip(sides, members, strict=True):
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

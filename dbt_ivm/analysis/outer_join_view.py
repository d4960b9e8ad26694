"""A plan as a join tree with outer joins (preserved_sides.py), and which columns show what about its tables.

Inputs of the tree are whatever stands below the joins: tables with their conditions, inner joins, groups, anything.
Between joins only columns are passed on; projections above the last join may compute.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from dbt_ivm.analysis.join_graph import base_of
from dbt_ivm.analysis.never_null import never_null_in
from dbt_ivm.analysis.preserved_sides import (
    JoinKind,
    JoinNode,
    JoinTree,
    Pair,
    outer_joins_of,
    pairs_of,
    tables_of,
    why_unsupported,
)
from dbt_ivm.nodes import column_name
from dbt_ivm.operators import FullJoin, Join, LeftJoin, Operator, Project, Projection, col, references
from dbt_ivm.types import are_comparable, is_floating


@dataclass(frozen=True)
class Origin:
    """A column of an input; without a column the mark (TRUE) of all rows of one side of an outer join."""

    inputs: frozenset[str]
    column: str = ""


@dataclass(frozen=True)
class OuterJoinView:
    """
    Args:
        joins: the topmost join.
        inputs: what is joined, by a name for each.
        origins: of the columns of ``joins``.
        known: origins of all columns of the joins below, too.
        used: what the condition of each outer join is about.
        equal: equalities between columns of inputs in it.
        sides: per input the smallest side of an outer join that can be replaced by NULLs with it.
    """

    joins: Operator
    tree: JoinTree
    inputs: Mapping[str, Operator]
    origins: Mapping[str, Origin]
    known: frozenset[Origin]
    used: Mapping[str, tuple[Origin, ...]]
    equal: Mapping[str, tuple[tuple[Origin, Origin], ...]]
    sides: Mapping[str, frozenset[str]]

    @cached_property
    def unsupported(self) -> str:
        if len({id(plan) for plan in self.inputs.values()}) < len(self.inputs):
            return "one subquery is joined twice"
        return why_unsupported(self.tree)

    @cached_property
    def outer_joins(self) -> Mapping[str, tuple[str, ...]]:
        """Per input the outer joins that can replace it by NULLs."""
        return outer_joins_of(self.tree)

    @cached_property
    def pairs(self) -> Mapping[str, tuple[Pair, ...]]:
        return pairs_of(self.tree)

    @cached_property
    def shown_as(self) -> Mapping[Origin, str]:
        return {origin: name for name, origin in reversed(list(self.origins.items()))}

    def marks(self, name: str, pair: Pair) -> tuple[Origin, ...]:
        """Not NULL where the input and what a pair preserves are there; the input's own first."""
        wanted = (name, *sorted(pair.preserved))
        return tuple(dict.fromkeys(Origin(self.sides[t]) for t in wanted if t in self.sides))

    def matched(self, pair: Pair) -> tuple[Origin, ...]:
        """The columns on which it depends whether what a pair preserves has a match."""
        return tuple(o for o in self.used[pair.join.name] if o.inputs <= pair.preserved)

    def equal_columns(self, pair: Pair, name: str) -> dict[Origin, str]:
        """Columns that the pair's condition holds equal to a column of the input, and that column."""
        own = frozenset({name})
        both = self.equal[pair.join.name]
        return {a: b.column for x, y in both for a, b in ((x, y), (y, x)) if b.inputs == own and b.column}

    def told_by(self) -> set[Origin]:
        """What to keep with the rows, so that the pairs of as many inputs as possible can be told from them."""
        wanted: set[Origin] = set()
        for name, pairs in self.pairs.items():
            needed = {o for pair in pairs for o in (*self.marks(name, pair), *self.matched(pair))}
            if needed <= self.known:
                wanted |= needed
        return wanted

    def why_not(self, name: str, is_shown: Callable[[str], bool]) -> str:
        """Why the pairs of an input cannot be told from these columns, or nothing."""
        for pair in self.pairs[name]:
            for mark in self.marks(name, pair):
                if mark not in self.known:
                    return f"{_listed(mark.inputs)} is looked up by its key, which stored rows do not have"
                if mark not in self.shown_as or not is_shown(self.shown_as[mark]):
                    return f"no stored column says whether {_listed(mark.inputs)} is there"
            for origin in self.matched(pair):
                shown = self.shown_as.get(origin)
                if shown is None or not is_shown(shown):
                    return f"{_listed(origin.inputs)} is matched by {origin.column}, which is not stored"
                if not self.joins.types[shown] or is_floating(self.joins.types[shown]):
                    return f"{_listed(origin.inputs)} is matched by {origin.column}, a number that is not exact"
        return ""


def _listed(names: Collection[str]) -> str:
    return " and ".join(sorted(names))


def outer_join_view(plan: Operator) -> OuterJoinView | None:
    """The joins of a plan below its last projections; None when no outer join is among them."""
    while isinstance(plan, Project):
        plan = plan.input
    if not _has_outer_joins(plan):
        return None
    reader = _Reader({}, set(), {}, {}, {})
    tree, origins = reader.read(plan)
    return OuterJoinView(
        plan, tree, reader.inputs, origins, frozenset(reader.known), reader.used, reader.equal, reader.sides
    )


def carrying(plan: Operator, wanted: Collection[Origin]) -> Operator:
    """The plan with these columns of its inputs among its own; new ones come last, under names nobody has."""
    reader = _Reader({}, set(), {}, {}, {})
    taken: set[str] = set()

    def collect(operator: Operator) -> None:
        taken.update(operator.column_names)
        for below in operator.inputs:
            collect(below)

    def carry(operator: Operator, is_top: bool) -> tuple[Operator, dict[str, Origin]]:
        if isinstance(operator, Project) and (is_top or _has_outer_joins(operator)):
            below, known = carry(operator.input, is_top)
            origins = _shown(operator, known, frozenset(o for origin in known.values() for o in origin.inputs))
            added = []
            for name, origin in known.items():
                if origin in wanted and origin not in origins.values():
                    is_free = is_top and name not in operator.column_names
                    new = name if is_free else _unused(name, taken)
                    added.append(Projection(new, col(name)))
                    origins[new] = origin
            return Project(below, (*operator.projections, *added)), origins
        if not _has_outer_joins(operator):
            return operator, reader.input(operator)
        parts = [carry(below, False) for below in operator.inputs]
        origins = {name: origin for _, columns in parts for name, origin in columns.items()}
        return operator.with_inputs(tuple(part for part, _ in parts)), origins

    collect(plan)
    return carry(plan, True)[0]


def _unused(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}_match{number}" in taken:
        number += 1
    taken.add(f"{name}_match{number}")
    return f"{name}_match{number}"


def _has_outer_joins(plan: Operator) -> bool:
    if isinstance(plan, Join):
        return any(_has_outer_joins(m) for m in plan.members)
    if isinstance(plan, Project):
        return all(p.is_reference or _is_true(p.expression) for p in plan.projections) and _has_outer_joins(plan.input)
    return isinstance(plan, (LeftJoin, FullJoin))


def _is_true(value: exp.Expr) -> bool:
    return isinstance(value, exp.Boolean) and bool(value.this)


def _is_equality(predicate: exp.Expr, types: Mapping[str, str]) -> bool:
    """Whether it holds two columns equal that compare as values of one kind."""
    if not isinstance(predicate, (exp.EQ, exp.NullSafeEQ)):
        return False
    sides = (predicate.this, predicate.expression)
    if not all(isinstance(s, exp.Column) for s in sides):
        return False
    left, right = (types[column_name(s)] for s in sides)
    return bool(left) and are_comparable(left, right)


def _is_mark(plan: Operator, name: str) -> bool:
    """Whether a column is TRUE in every row."""
    while isinstance(plan, Project):
        made = next(p.expression for p in plan.projections if p.name == name)
        if not isinstance(made, exp.Column):
            return _is_true(made)
        plan, name = plan.input, column_name(made)
    return False


def _shown(project: Project, known: Mapping[str, Origin], below: frozenset[str]) -> dict[str, Origin]:
    """Origins of what a projection passes on, and of its mark."""
    found = {}
    for projection in project.projections:
        if isinstance(projection.expression, exp.Column):
            origin = known.get(column_name(projection.expression))
            if origin is not None:
                found[projection.name] = origin
        elif _is_true(projection.expression):
            found[projection.name] = Origin(below)
    return found


@dataclass
class _Reader:
    inputs: dict[str, Operator]
    known: set[Origin]
    used: dict[str, tuple[Origin, ...]]
    equal: dict[str, tuple[tuple[Origin, Origin], ...]]
    sides: dict[str, frozenset[str]]

    def input(self, plan: Operator) -> dict[str, Origin]:
        member = base_of(plan)
        base = member.scan.source.name if member is not None else "a subquery"
        name, number = base, 1
        while name in self.inputs:
            number += 1
            name = f"{base} #{number}"
        self.inputs[name] = plan
        own = frozenset({name})
        origins = {n: Origin(own) if _is_mark(plan, n) else Origin(own, n) for n in plan.column_names}
        self.known.update(origins.values())
        return origins

    def read(self, plan: Operator) -> tuple[JoinTree, dict[str, Origin]]:
        if not _has_outer_joins(plan):
            origins = self.input(plan)
            return list(self.inputs)[-1], origins
        if isinstance(plan, Project):
            tree, below = self.read(plan.input)
            origins = _shown(plan, below, frozenset(tables_of(tree)))
            self.known.update(origins.values())
            return tree, origins
        parts = [self.read(below) for below in plan.inputs]
        origins = {name: origin for _, columns in parts for name, origin in columns.items()}
        trees = [tree for tree, _ in parts]
        if isinstance(plan, Join):
            return self._inner(trees, plan, origins), origins
        assert isinstance(plan, (LeftJoin, FullJoin))
        kind = JoinKind.FULL if isinstance(plan, FullJoin) else JoinKind.LEFT
        for tree in trees[0 if kind is JoinKind.FULL else 1 :]:
            for name in tables_of(tree):
                self.sides.setdefault(name, frozenset(tables_of(tree)))
        return self._node(kind, trees[0], trees[1], plan.predicates, origins, plan.types), origins

    def _inner(self, trees: list[JoinTree], plan: Join, origins: Mapping[str, Origin]) -> JoinTree:
        tree = trees[0]
        for number, other in enumerate(trees[1:], 2):
            predicates = plan.predicates if number == len(trees) else ()
            tree = self._node(JoinKind.INNER, tree, other, predicates, origins, plan.types)
        return tree

    def _node(
        self,
        kind: JoinKind,
        left: JoinTree,
        right: JoinTree,
        predicates: tuple[exp.Expr, ...],
        origins: Mapping[str, Origin],
        types: Mapping[str, str],
    ) -> JoinNode:
        used = dict.fromkeys(n for p in predicates for n in references(p))
        strict = dict.fromkeys(n for p in predicates for n in sorted(never_null_in(p)))
        listed, surely = ([origins[n] for n in names] for names in (used, strict))
        node = JoinNode(
            kind,
            left,
            right,
            frozenset[str]().union(*(o.inputs for o in listed)),
            frozenset[str]().union(*(o.inputs for o in surely if len(o.inputs) == 1)),
            f"the join of {_listed(tables_of(left))} with {_listed(tables_of(right))}",
        )
        self.used[node.name] = tuple(listed)
        self.equal[node.name] = tuple(
            (origins[column_name(p.this)], origins[column_name(p.expression)])
            for p in predicates
            if _is_equality(p, types)
        )
        return node


def with_joins(plan: Operator, joins: Operator) -> Operator:
    """The plan's last projections over other joins of the same columns."""
    return replace(plan, input=with_joins(plan.input, joins)) if isinstance(plan, Project) else joins

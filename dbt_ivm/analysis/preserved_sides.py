"""Which tables of a view with outer joins are missing together, and which rows are then left over.

A *unit* is a set of tables that an outer join can replace by NULLs at once; the root unit never is.  Units form the
normalised join tree: inner joins add their tables to the unit they stand in, outer joins open units below it.

    (r ⟕ t) ⟗ s      root                          r is in the left side of the full join, t in a unit below that
                      └ full ─ side {r} ─ left {t}  side {s}

A *pair* of a table T says what becomes of a row in which T has no match any more:  ``preserved`` are the tables that
had the match, ``supplied`` all tables that become NULL with T, ``join`` the outer join whose condition is not met.
Tables in neither stay as they are.  T is missing in a row exactly when one of its pairs describes it.

    t:  preserved {r}, supplied {t, s}       s had its match by t, so it goes too
        preserved {s}, supplied {r, t}

What must hold (``why_unsupported``): a condition of an outer join uses both sides; one that uses a table which may be
missing below is not true for NULLs of it, so that NULLs spread upwards; no other condition uses such a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum


class JoinKind(Enum):
    INNER = "inner"
    LEFT = "left"
    FULL = "full"


@dataclass(frozen=True)
class JoinNode:
    """A join of two trees.

    Args:
        used: tables that the condition uses.
        strict: those of them without which the condition is not true.
        name: tells joins apart.
    """

    kind: JoinKind
    left: JoinTree
    right: JoinTree
    used: frozenset[str]
    strict: frozenset[str] = frozenset()
    name: str = ""


#: A table by its name, or a join.
JoinTree = str | JoinNode


@dataclass(frozen=True)
class Unit:
    """``tables`` are directly in it; ``join`` is the outer join that opened it (not of the sides of a full join)."""

    tables: tuple[str, ...]
    below: tuple[Unit, ...]
    join: JoinNode | None = None

    @property
    def every(self) -> frozenset[str]:
        """All tables in it and below it: they are missing when it is."""
        return frozenset(self.tables).union(*(unit.every for unit in self.below))


@dataclass(frozen=True)
class Pair:
    preserved: frozenset[str]
    supplied: frozenset[str]
    join: JoinNode


def tables_of(tree: JoinTree) -> tuple[str, ...]:
    return (tree,) if isinstance(tree, str) else (*tables_of(tree.left), *tables_of(tree.right))


def normalised(tree: JoinTree) -> Unit:
    """The root unit."""
    return _unit(tree, None)


def _unit(tree: JoinTree, join: JoinNode | None) -> Unit:
    tables: list[str] = []
    below: list[Unit] = []

    def add(part: JoinTree) -> None:
        if isinstance(part, str):
            tables.append(part)
        elif part.kind is JoinKind.INNER:
            add(part.left)
            add(part.right)
        elif part.kind is JoinKind.LEFT:
            add(part.left)
            below.append(_unit(part.right, part))
        else:
            below.append(Unit((), (_unit(part.left, None), _unit(part.right, None)), part))

    add(tree)
    return Unit(tuple(tables), tuple(below), join)


def outer_joins_of(tree: JoinTree) -> dict[str, tuple[str, ...]]:
    """Per table the names of the outer joins that can replace it by NULLs, the direct one first."""
    if isinstance(tree, str):
        return {tree: ()}
    here = (tree.name,)
    sides = (tree.left, tree.kind is JoinKind.FULL), (tree.right, tree.kind is not JoinKind.INNER)
    return {
        table: joins + (here if is_supplied else ())
        for side, is_supplied in sides
        for table, joins in outer_joins_of(side).items()
    }


def why_unsupported(tree: JoinTree) -> str:
    """The first condition that does not allow the pairs to be used, or nothing."""
    if isinstance(tree, str):
        return ""
    for side, is_matched in ((tree.left, False), (tree.right, tree.kind is JoinKind.LEFT)):
        missing = {table for table, joins in outer_joins_of(side).items() if joins} & tree.used
        if missing and (tree.kind is JoinKind.INNER or is_matched):
            return f"the condition of {tree.name} uses {_listed(missing)}, which may be missing there"
        if missing - tree.strict:
            return f"the condition of {tree.name} may be true without {_listed(missing - tree.strict)}"
        if tree.kind is not JoinKind.INNER and not tree.used & set(tables_of(side)):
            return f"the condition of {tree.name} does not use both sides"
    return why_unsupported(tree.left) or why_unsupported(tree.right)


def _listed(tables: set[str] | frozenset[str]) -> str:
    return ", ".join(sorted(tables))


@dataclass
class _Open:
    """A pair while it grows; one without a join has nothing preserved yet and describes no row."""

    supplied: frozenset[str]
    preserved: frozenset[str] = frozenset()
    join: JoinNode | None = None


@dataclass
class _Pairs:
    """Pairs per unit, filled from the innermost joins outwards."""

    root: Unit
    open: dict[int, list[_Open]] = field(default_factory=dict)
    above: dict[int, Unit | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._register(self.root, None)
        for unit in self.root.below:
            self._fill(unit)

    def _register(self, unit: Unit, above: Unit | None) -> None:
        self.open[id(unit)] = [_Open(unit.every)]
        self.above[id(unit)] = above
        for below in unit.below:
            self._register(below, unit)

    def units(self, unit: Unit | None = None) -> Iterator[Unit]:
        unit = unit or self.root
        yield unit
        for below in unit.below:
            yield from self.units(below)

    def around(self, table: str, limit: Unit) -> Iterator[Unit]:
        """The units that are missing with a table's, from its own to the one right below ``limit``."""
        unit: Unit | None = next(u for u in self.units() if table in u.tables)
        while unit is not None and unit is not limit:
            yield unit
            unit = self.above[id(unit)]

    def needed_by(self, table: str, here: Unit) -> Iterator[Unit]:
        """The units of a side without which the table is missing: those around it, and those it had its match by."""
        for unit in self.units(here):
            gone = unit.every
            for other in self.units(here):  # outer joins come after what they are on
                join = other.join
                if join is not None and join.kind is JoinKind.LEFT and (join.used - other.every) & gone:
                    gone |= other.every
            if table in gone:
                yield unit

    def _spread(self, missing: frozenset[str], unit: Unit) -> None:
        """Where these tables are missing, the unit has no match either, unless it is what is preserved."""
        for pairs in self.open.values():
            for pair in pairs:
                if missing <= pair.supplied and pair.preserved.isdisjoint(unit.every):
                    pair.supplied |= unit.every

    def _fill(self, unit: Unit) -> None:
        for below in unit.below:
            self._fill(below)
        join = unit.join
        if join is None:
            return
        if join.kind is JoinKind.LEFT:
            for table in sorted(join.used - unit.every):
                self._spread(frozenset({table}), unit)
            for pair in self.open[id(unit)]:
                pair.preserved |= join.used - unit.every
                pair.join = pair.join or join
            return
        first, second = unit.below
        for here, there in ((first, second), (second, first)):
            for table in sorted(join.used & here.every):
                for other in self.around(table, unit):
                    self._spread(other.every, there)
                for other in self.needed_by(table, here):
                    self._add(other, _Open(here.every, join.used & there.every, join))

    def _add(self, unit: Unit, new: _Open) -> None:
        known = self.open[id(unit)]
        if all((p.supplied, p.preserved) != (new.supplied, new.preserved) for p in known):
            known.append(new)


def pairs_of(tree: JoinTree) -> dict[str, tuple[Pair, ...]]:
    """Per table its pairs; none for a table that is never missing."""
    found = _Pairs(normalised(tree))
    return {
        table: tuple(
            Pair(p.preserved, p.supplied, p.join) for p in found.open[id(unit)] if p.join is not None and p.preserved
        )
        for unit in found.units()
        for table in unit.tables
    }

"""Net supplements, in bags, before their SQL: outer joins maintained from the stored view and the change.

Changed tables come one after the other.  When T is next, the tables before it are as after the change (Post), those
after it as before (Pre), and W is the view in between:

    P      = rows of the view in which T's row is a changed one: outer joins that replace T by NULLs keep T instead
    for each pair (ps, ns) of T and each row p of P with ps:         y(p) = p with NULLs for ns
    m(p)   = number of rows of W with ps, T and the values of ps that the pair's condition uses, as p has them
    n(p)   = m(p) + the same number in P, signed
    supplement for each y:   +y  where m > 0 and n = 0 (the last match went)      −y  where m = 0 and n > 0 (the first came)
    W      = W + P + supplements

Whether rows of ps have a match depends on the columns of the condition only, so equal values have one answer: neither
keys nor the tables themselves are asked.
"""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from dbt_ivm.analysis.preserved_sides import JoinKind, JoinNode, JoinTree, pairs_of, tables_of, why_unsupported

Row = tuple[int | None, ...]
#: Per table its row, or None where it is missing.
Combined = tuple[Row | None, ...]
Bag = Counter[Combined]
STATES = int(os.environ.get("DBT_IVM_STATES", "3000"))


@dataclass(frozen=True)
class Equal:
    """Columns of two tables are equal; ``null_safe``: NULLs are, too, also those of a missing table."""

    left: str
    a: int
    right: str
    b: int
    null_safe: bool = False


@dataclass(frozen=True)
class View:
    tree: JoinTree
    conditions: Mapping[str, tuple[Equal, ...]]

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(sorted(tables_of(self.tree)))

    def row(self, table: str, row: Row) -> Combined:
        return tuple(row if t == table else None for t in self.tables)

    def meets(self, join: JoinNode, combined: Combined) -> bool:
        rows = dict(zip(self.tables, combined, strict=True))
        for c in self.conditions[join.name]:
            left, right = rows[c.left], rows[c.right]
            a, b = (left[c.a] if left else None), (right[c.b] if right else None)
            if not (a == b if c.null_safe else a is not None and a == b):
                return False
        return True

    def evaluate(self, tree: JoinTree, state: Mapping[str, Counter[Row]]) -> Bag:
        if isinstance(tree, str):
            return Counter({self.row(tree, r): n for r, n in state[tree].items()})
        left, right = self.evaluate(tree.left, state), self.evaluate(tree.right, state)
        return self.joined(tree, left, right, tree.kind is not JoinKind.INNER, tree.kind is JoinKind.FULL)

    def joined(self, join: JoinNode, left: Bag, right: Bag, keeps_left: bool, keeps_right: bool) -> Bag:
        found: Bag = Counter()
        matched: set[Combined] = set()
        for (a, n), (b, m) in itertools.product(left.items(), right.items()):
            both = tuple(x if x is not None else y for x, y in zip(a, b, strict=True))
            if self.meets(join, both):
                found[both] += n * m
                matched |= {a, b}
        for rows, keeps in ((left, keeps_left), (right, keeps_right)):
            for a, n in rows.items() if keeps else ():
                found[a] += n if a not in matched else 0
        return found

    def primary(self, tree: JoinTree, table: str, change: Counter[Row], state: Mapping[str, Counter[Row]]) -> Bag:
        """P: linear in the change."""
        if isinstance(tree, str):
            return Counter({self.row(table, r): n for r, n in change.items()})
        is_left = table in tables_of(tree.left)
        inner, other = (tree.left, tree.right) if is_left else (tree.right, tree.left)
        keeps = tree.kind is JoinKind.FULL or (tree.kind is JoinKind.LEFT and is_left)
        return self.joined(tree, self.primary(inner, table, change, state), self.evaluate(other, state), keeps, False)

    def supplements(self, table: str, primary: Bag, stored: Bag) -> Bag:
        found: Bag = Counter()
        here = self.tables.index(table)
        for pair in pairs_of(self.tree)[table]:
            sides = [s for e in self.conditions[pair.join.name] for s in ((e.left, e.a), (e.right, e.b))]
            used = [(self.tables.index(t), c) for t, c in sides if t in pair.preserved]
            preserved = [self.tables.index(t) for t in pair.preserved]

            def match(row: Combined) -> Row | None:
                if row[here] is None or any(row[p] is None for p in preserved):  # noqa: B023
                    return None
                return tuple(row[t][c] for t, c in used)  # type: ignore[index]  # noqa: B023

            before: Counter[Row | None] = Counter()
            after: Counter[Row | None] = Counter()
            for bag, counts in ((stored, (before, after)), (primary, (after,))):
                for row, n in bag.items():
                    for count in counts:
                        count[match(row)] += n
            for row in {row for row, n in primary.items() if n and match(row) is not None}:
                nulled = tuple(None if t in pair.supplied else r for t, r in zip(self.tables, row, strict=True))
                sign = (after[match(row)] == 0) - (before[match(row)] == 0)
                if sign:
                    assert found[nulled] in (0, sign)
                    found[nulled] = sign
        return found


def plus(*bags: Bag) -> Bag:
    total: Bag = Counter()
    for bag in bags:
        for row, n in bag.items():
            total[row] += n
    return Counter({row: n for row, n in total.items() if n})


def some_condition(rng: random.Random, left: tuple[str, ...], right: tuple[str, ...]) -> tuple[Equal, ...]:
    """Mostly one equality; sometimes of several tables of a side, sometimes null-safe."""
    return tuple(
        Equal(rng.choice(left), rng.choice([1, 2]), rng.choice(right), rng.choice([1, 2]), rng.random() < 0.2)
        for _ in range(rng.choice([1, 1, 1, 2]))
    )


def some_view(rng: random.Random, tables: tuple[str, ...]) -> View:
    conditions: dict[str, tuple[Equal, ...]] = {}

    def grow(part: tuple[str, ...]) -> JoinTree:
        if len(part) == 1:
            return part[0]
        cut = rng.randint(1, len(part) - 1)
        left, right = grow(part[:cut]), grow(part[cut:])
        condition = some_condition(rng, part[:cut], part[cut:])
        name = f"join {len(conditions)}"
        conditions[name] = condition
        used = frozenset(t for e in condition for t in (e.left, e.right))
        strict = frozenset(t for e in condition if not e.null_safe for t in (e.left, e.right))
        kind = rng.choice([JoinKind.INNER, JoinKind.LEFT, JoinKind.LEFT, JoinKind.FULL])
        return JoinNode(kind, left, right, used, strict, name)

    return View(grow(tables), conditions)


def some_rows(rng: random.Random, ids: list[int]) -> list[Row]:
    return [(i, rng.choice([None, 0, 1]), rng.choice([None, 0, 1, 2])) for i in ids]


def moved(rng: random.Random, rows: list[Row]) -> list[Row]:
    """Rows go, come, and change under the same key."""
    kept = [r if rng.random() < 0.7 else some_rows(rng, [r[0]])[0] for r in rows if rng.random() < 0.7]  # type: ignore[list-item]
    new = [i for i in range(10, 14) if rng.random() < 0.3]
    return kept + some_rows(rng, new)


def check_state(view: View, rng: random.Random) -> bool:
    old = {t: some_rows(rng, [i for i in range(4) if rng.random() < 0.7]) for t in view.tables}
    new = {t: moved(rng, rows) if rng.random() < 0.6 else rows for t, rows in old.items()}
    state = {t: Counter(rows) for t, rows in old.items()}
    stored = view.evaluate(view.tree, state)
    order = [t for t in view.tables if old[t] != new[t]]
    rng.shuffle(order)
    for table in order:
        after = Counter(new[table])
        change: Counter[Row] = Counter({r: after[r] - state[table][r] for r in {*after, *state[table]}})
        primary = plus(view.primary(view.tree, table, Counter({r: n for r, n in change.items() if n}), state))
        stored = plus(stored, primary, view.supplements(table, primary, stored))
        state[table] = after
        assert stored == plus(view.evaluate(view.tree, state)), (view, table)
    return bool(order)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_the_stored_view_and_the_change_tell_the_new_view(size: int) -> None:
    rng, done = random.Random(size), 0
    while done < STATES // size:
        view = some_view(rng, ("a", "b", "c", "d", "e")[:size])
        if not why_unsupported(view.tree):
            done += any(check_state(view, rng) for _ in range(3))

"""Left edges in a tree of lookups, as a model in bags, checked on random histories before any SQL is believed.

R(s, u, v) → S(k, t, x) → T(k, y),  R → U(k, z)      each edge inner or left; no key is enforced, references may dangle

A left edge keeps its row: matches, or one row of NULLs where there is none.  Inner parts are linear in the looked-up
table, so rows seen before may meet Post and −Δ side by side; rows of NULLs are not, so along a left edge

    seen(S) = Post(S) without the changed keys K, on both sides;  Post(S) | K after;  Post(S) | K − Δ(S), netted, before

A key in the rows to look up is all that Post(S) is read for.  Touched keys are the same as along inner edges.  Where no
key that is looked up had or has two rows, what was there before is the removed rows (``foreign_keys: verify`` looks).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.property.test_lookup_algebra import CLEAN, DANGLING, EDGES, WILD, Bag, Database, Edge, dangling, keys, minus
from tests.property.test_lookup_algebra import state as some_state

Row = tuple[Any, ...]
#: Position of the referencing column in a row of the view so far, and what the looked-up row adds; R S U T.
ORDER = (("R", "S", 0), ("R", "U", 1), ("S", "T", 4))
WIDTH = {"S": 3, "U": 2, "T": 2}
AFTER, BEFORE, BOTH = 1, -1, 0


@dataclass(frozen=True)
class Shape:
    """Which edges are left, and further conditions of them; ``filtered`` tables show some rows only."""

    left: frozenset[str]
    condition: Callable[[str, Row, Row], bool]
    filtered: frozenset[str]

    def shown(self, name: str, rows: Bag) -> Bag:
        return Counter({r: w for r, w in rows.items() if name not in self.filtered or r[-1] != 0})

    def matches(self, child: str, row: Row, other: Row, position: int) -> bool:
        same = row[position] is not None and row[position] == other[0]
        return same and (child not in self.left or self.condition(child, row, other))


def view(db: Database, shape: Shape) -> Bag:
    """Joined as the query says it."""
    found = shape.shown("R", db["R"])
    for _, child, position in ORDER:
        others, joined = shape.shown(child, db[child]), Counter[Row]()
        for row, weight in found.items():
            matches = [(o, n) for o, n in others.items() if shape.matches(child, row, o, position)]
            if not matches and child in shape.left:
                matches = [((None,) * WIDTH[child], 1)]
            for other, n in matches:
                joined[row + other] += weight * n
        found = joined
    return minus(found, Counter())


def seen(
    name: str, db: Database, change: Bag, shape: Shape, wanted: set[Any], trusted: bool
) -> list[tuple[Row, int, int]]:
    """The looked-up table as rows with weight and side, for a table that changed."""
    after = shape.shown(name, db[name])
    if name not in shape.left:
        return [(r, w, BOTH) for r, w in after.items()] + [(r, -w, BEFORE) for r, w in change.items()]
    changed = {row[0] for row in change}
    now = [(r, w, AFTER if r[0] in changed else BOTH) for r, w in after.items() if r[0] in wanted]
    was = minus(Counter({r: w for r, w in after.items() if r[0] in changed}), change)
    if trusted:  # at most one row had the key, so it is the removed one
        was = Counter({r: -w for r, w in change.items() if w < 0})
    assert all(w > 0 for w in was.values())
    return now + [(r, w, BEFORE) for r, w in was.items()]


def refresh(
    before: Database, after: Database, known: dict[Edge, int], shape: Shape, trusted: bool = False, looks: bool = False
) -> tuple[Bag, dict[Edge, int]]:
    """The change of the view, and the dangling rows along each edge, from those before."""
    change = {n: minus(after[n], before[n]) for n in after}
    shown = {n: shape.shown(n, rows) for n, rows in change.items()}
    extended: dict[str, Bag] = {}  # row + side: weight

    def looked_up_again(name: str) -> Bag:
        added = Counter({r: w for r, w in shown[name].items() if w > 0})
        unchanged = minus(shape.shown(name, after[name]), added)
        touched_by = []
        for (parent, child), position in EDGES.items():
            if parent != name:
                continue
            inserted = {r[0] for r, w in change[child].items() if w > 0}
            gone = {r[0] for r, w in change[child].items() if w < 0}
            several = {k for k in inserted if keys(after[child])[(k,)] > 1}
            touched = gone | (inserted if known[parent, child] else several)
            touched = gone & inserted if trusted else touched
            touched |= {row[0] for row in looked_up_again(child)}
            touched_by.append((position, touched - {None}))
        again = Counter({r: w for r, w in unchanged.items() if any(r[p] in t for p, t in touched_by)})
        extended[name] = Counter()
        for row, w in shown[name].items():
            extended[name][(*row, AFTER if w > 0 else BEFORE)] += w
        for row, w in again.items():
            extended[name][(*row, AFTER)] += w
            extended[name][(*row, BEFORE)] -= w
        return again

    looked_up_again("R")
    rows: list[tuple[Row, int, int]] = [(r[:-1], w, r[-1]) for r, w in extended["R"].items()]
    wanted: dict[str, set[Any]] = {}
    for parent, child, position in ORDER:
        if parent == "R":
            wanted[child] = {row[position] for row, _, _ in rows}
        else:  # from the parent's rows, not from the rows so far: these would be computed twice at every step
            column = EDGES[parent, child]
            close = [r for r in after[parent] if r[0] in wanted[parent]]
            wanted[child] = {r[column] for r in (*close, *change[parent])}
        once = trusted or (
            looks
            and all(
                keys(db[child])[(row[EDGES[parent, child]],)] <= 1 for row in extended[parent] for db in (before, after)
            )
        )
        others = seen(child, after, shown[child], shape, wanted[child], once)
        joined: list[tuple[Row, int, int]] = []
        for row, weight, side in rows:
            matches = [(o, n) for o, n, s in others if s in (BOTH, side) and shape.matches(child, row, o, position)]
            if not matches and child in shape.left:
                matches = [((None,) * WIDTH[child], 1)]
            joined += [(row + o, weight * n, side) for o, n in matches]
        rows = joined
    found: Bag = Counter()
    for row, weight, _ in rows:
        found[row] += weight
    counted = {}
    for (parent, child), position in EDGES.items():
        after_rows = Counter({r[:-1]: w for r, w in extended[parent].items() if r[-1] == AFTER})
        before_rows = Counter({r[:-1]: -w for r, w in extended[parent].items() if r[-1] == BEFORE})
        counted[parent, child] = (
            known[parent, child]
            + dangling(after_rows, position, after[child])
            - dangling(before_rows, position, before[child])
        )
    return minus(found, Counter()), counted


def some_shape(rng: random.Random) -> Shape:
    left = {"S", "T"} if rng.random() < 0.7 else {"T"} if rng.random() < 0.5 else set()
    left |= {"U"} if rng.random() < 0.6 or not left else set()
    limit = rng.choice([None, None, 0, 1])

    def condition(child: str, row: Row, other: Row) -> bool:
        return limit is None or (other[-1] is not None and row[2] <= other[-1] + limit)

    return Shape(frozenset(left), condition, frozenset(n for n in "RSTU" if rng.random() < 0.15))


def test_left_edges_are_exact_whatever_the_keys_do(histories: int = 4000, first: int = 0) -> None:
    reused = 0
    for number in range(first, first + histories):
        rng = random.Random(number)
        shape = some_shape(rng)
        now = some_state(rng, rng.choice([CLEAN, DANGLING, WILD]), {})
        seen_rows = {name: shape.shown(name, rows) for name, rows in now.items()}
        known = {edge: dangling(seen_rows[edge[0]], position, now[edge[1]]) for edge, position in EDGES.items()}
        for _ in range(3):
            following = some_state(rng, rng.choice([CLEAN, CLEAN, DANGLING, WILD]), now)
            found, known = refresh(now, following, known, shape, looks=rng.random() < 0.5)
            assert found == minus(view(following, shape), view(now, shape)), number
            now = following
            for edge, position in EDGES.items():
                assert known[edge] == dangling(shape.shown(edge[0], now[edge[0]]), position, now[edge[1]]), number
            reused += not any(known.values())
    assert reused > histories / 20  # the short reach was relied on


def test_trusted_keys_that_hold(histories: int = 1500, first: int = 0) -> None:
    for number in range(first, first + histories):
        rng = random.Random(number)
        shape = some_shape(rng)
        now = some_state(rng, CLEAN, {})
        for _ in range(3):
            following = some_state(rng, CLEAN, now)
            found, _ = refresh(now, following, dict.fromkeys(EDGES, 0), shape, trusted=True)
            assert found == minus(view(following, shape), view(now, shape)), number
            now = following

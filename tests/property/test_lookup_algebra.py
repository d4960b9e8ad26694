"""One branch for a tree of lookups, as a model in bags, checked on random histories before any SQL is believed.

R(s, u, v) → S(k, t, x) → T(k, y),  R → U(k, z)          no key is enforced; references may dangle or be NULL

view change   rows of ΔR* seen after meet Post, rows seen before meet Post − Δ as a weighted bag
ΔR*           Ins(R) after, Del(R) before, and both ways the unchanged rows A that reference a touched key
touched       no row dangled before:  keys of removed rows, and inserted keys that several rows have now
              otherwise:              all changed keys
dangling      rows that reference nothing: those of ΔR* that find no match on their own side, added up
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

Bag = Counter[tuple[Any, ...]]
Database = dict[str, Bag]
Edge = tuple[str, str]

#: position of the referencing column; the referenced key comes first in its table
EDGES: dict[Edge, int] = {("R", "S"): 0, ("R", "U"): 1, ("S", "T"): 1}
CLEAN, DANGLING, WILD = "keys hold", "references dangle", "keys occur twice, too"


def view(db: Database) -> Bag:
    found: Bag = Counter()
    for (s, u, v), rows in db["R"].items():
        for (k, t, x), middle in db["S"].items():
            for (kt, y), last in db["T"].items():
                for (ku, z), other in db["U"].items():
                    if None not in (s, t, u) and (s, t, u) == (k, kt, ku):
                        found[(v, x, y, z)] += rows * middle * last * other
    return found


def minus(left: Bag, right: Bag) -> Bag:
    found = Counter(left)
    found.subtract(right)
    return Counter({row: weight for row, weight in found.items() if weight})


def keys(rows: Bag) -> Bag:
    found: Bag = Counter()
    for row, weight in rows.items():
        found[(row[0],)] += weight
    return found


def dangling(rows: Bag, position: int, referenced: Bag) -> int:
    present = {key for (key,), count in keys(referenced).items() if count}
    return sum(w for row, w in rows.items() if row[position] is not None and row[position] not in present)


def refresh(before: Database, after: Database, known: dict[Edge, int]) -> tuple[Bag, dict[Edge, int]]:
    """The change of the view, and the dangling rows along each edge, from those before."""
    change = {name: minus(after[name], before[name]) for name in after}
    added = {name: Counter({r: w for r, w in rows.items() if w > 0}) for name, rows in change.items()}
    removed = {name: Counter({r: -w for r, w in rows.items() if w < 0}) for name, rows in change.items()}
    extended: dict[str, tuple[Bag, Bag]] = {}

    def unchanged_but_looked_up(name: str) -> Bag:
        again: Bag = Counter()
        for (parent, child), position in EDGES.items():
            if parent != name:
                continue
            inserted, gone = {r[0] for r in added[child]}, {r[0] for r in removed[child]}
            several = {k for k in inserted if keys(after[child])[(k,)] > 1}
            touched = gone | (inserted if known[parent, child] else several)
            touched |= {row[0] for row in unchanged_but_looked_up(child)}
            rows = minus(after[name], added[name])
            again.update({r: w for r, w in rows.items() if r not in again and r[position] in touched - {None}})
        extended[name] = (added[name] + again, removed[name] + again)
        return again

    unchanged_but_looked_up("R")
    old = {name: minus(after[name], change[name]) for name in after}
    seen_after, seen_before = extended["R"]
    found = minus(view(after | {"R": seen_after}), view(old | {"R": seen_before}))
    counted = {
        (parent, child): known[parent, child]
        + dangling(extended[parent][0], position, after[child])
        - dangling(extended[parent][1], position, old[child])
        for (parent, child), position in EDGES.items()
    }
    return found, counted


def state(rng: random.Random, kind: str, kept: Database) -> Database:
    """Some rows stay, others come; with clean keys all references are mended."""
    db: Database = {}
    for name, count in (("T", 3), ("U", 2), ("S", 4), ("R", 5)):
        rows = Counter({r: w for r, w in kept.get(name, Counter()).items() if rng.random() < 0.7})
        for _ in range(rng.randrange(5)):
            key = rng.choice([None, *range(count)]) if kind == WILD else rng.randrange(count)
            row = {
                "R": (rng.choice([None, 0, 1, 2, 3]), rng.choice([None, 0, 1]), rng.randrange(2)),
                "S": (key, rng.choice([None, 0, 1, 2]), rng.randrange(2)),
            }.get(name, (key, rng.randrange(2)))
            if name == "R" or kind == WILD or (row[0],) not in keys(rows):
                rows[row] += 1
        db[name] = rows
    for (parent, child), position in reversed(EDGES.items()) if kind == CLEAN else ():
        mended: Bag = Counter()
        for row, weight in db[parent].items():
            lost = (row[position],) not in keys(db[child])
            mended[(*row[:position], None, *row[position + 1 :]) if lost else row] += weight
        db[parent] = mended
    return db


def test_one_branch_is_exact_whatever_the_keys_do() -> None:
    reused = 0
    for seed in range(3000):
        rng = random.Random(seed)
        now = state(rng, rng.choice([CLEAN, DANGLING, WILD]), {})
        known = {edge: dangling(now[edge[0]], position, now[edge[1]]) for edge, position in EDGES.items()}
        for _ in range(3):
            following = state(rng, rng.choice([CLEAN, CLEAN, DANGLING, WILD]), now)
            found, known = refresh(now, following, known)
            assert found == minus(view(following), view(now)), seed
            now = following
            for edge, position in EDGES.items():
                assert known[edge] == dangling(now[edge[0]], position, now[edge[1]]), (seed, edge)
            reused += not any(known.values())
    assert reused > 500  # the short reach was relied on

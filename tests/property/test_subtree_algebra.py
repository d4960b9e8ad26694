"""A subtree kept as a table of its own, as a model in bags: A = S ⋈ T under the key of S, then R → A, R → U.

    Δ(R ⋈ S ⋈ T ⋈ U) = Δ(R ⋈ A ⋈ U)        with A before and after the change like any table

reach of changed keys of A (operators/lookup_tree.py):
    verify   no row of R dangled in A before: removed keys and doubled ones; otherwise all
    trust    R → S holds, S → T holds and S.t is never NULL: keys removed and inserted; otherwise all
A crash between both commits: A moves on twice while R ⋈ A ⋈ U moves once, with the same rule.
"""

from __future__ import annotations

import random
from collections import Counter

from tests.property.test_lookup_algebra import CLEAN, DANGLING, WILD, Bag, Database, dangling, keys, minus, state, view

REMOVED, REPLACED, ALL = "removed", "replaced", "all"


def subtree(db: Database) -> Bag:
    """A(k, x, y), a row per row of S and match in T."""
    found: Bag = Counter()
    for (k, t, x), rows in db["S"].items():
        for (kt, y), last in db["T"].items():
            if t is not None and t == kt:
                found[(k, x, y)] += rows * last
    return found


def star(r: Bag, a: Bag, u: Bag) -> Bag:
    found: Bag = Counter()
    for (s, ru, v), rows in r.items():
        for (k, x, y), below in a.items():
            for (ku, z), other in u.items():
                if None not in (s, ru) and (s, ru) == (k, ku):
                    found[(v, x, y, z)] += rows * below * other
    return found


def touched(after: Bag, change: Bag, reach: str) -> set[object]:
    inserted = {r[0] for r, w in change.items() if w > 0}
    gone = {r[0] for r, w in change.items() if w < 0}
    if reach == ALL:
        return inserted | gone
    if reach == REPLACED:
        return inserted & gone
    return gone | {k for k in inserted if keys(after)[(k,)] > 1}


def refresh(before: Database, after: Database, reaches: dict[str, str]) -> Bag:
    """The change of R ⋈ A ⋈ U in one branch, from the changes of R, A and U."""
    was = {"R": before["R"], "A": subtree(before), "U": before["U"]}
    now = {"R": after["R"], "A": subtree(after), "U": after["U"]}
    change = {n: minus(now[n], was[n]) for n in now}
    added = Counter({r: w for r, w in change["R"].items() if w > 0})
    removed = Counter({r: -w for r, w in change["R"].items() if w < 0})
    unchanged = minus(now["R"], added)
    a = touched(now["A"], change["A"], reaches["A"]) - {None}
    u = touched(now["U"], change["U"], reaches["U"]) - {None}
    again = Counter({r: w for r, w in unchanged.items() if r[0] in a or r[1] in u})
    old = {n: minus(now[n], change[n]) for n in now}
    return minus(star(added + again, now["A"], now["U"]), star(removed + again, old["A"], old["U"]))


def reaches_of(mode: str, before: Database, after: Database) -> dict[str, str]:
    """What may be relied on; in trust only what was declared, and here it holds."""
    if mode == "off":
        return {"A": ALL, "U": ALL}
    if mode == "verify":
        lost = {"A": dangling(before["R"], 0, subtree(before)), "U": dangling(before["R"], 1, before["U"])}
        return {n: ALL if count else REMOVED for n, count in lost.items()}
    is_total = all(row[1] is not None for db in (before, after) for row in db["S"])
    return {"A": REPLACED if is_total else ALL, "U": REPLACED}


def without_null(db: Database) -> Database:
    """Rows of S reference something: those that do not go, and what referenced them loses its reference."""
    rows = Counter({row: w for row, w in db["S"].items() if row[1] is not None})
    left = {key for (key,) in keys(rows)}
    facts: Bag = Counter()
    for (s, u, v), weight in db["R"].items():
        facts[(s if s in left else None, u, v)] += weight
    return {**db, "S": rows, "R": facts}


def test_the_view_over_its_subtree_changes_like_the_view() -> None:
    relied: Counter[str] = Counter()
    for seed in range(4000):
        rng = random.Random(seed)
        mode = rng.choice(["verify", "trust", "off"])
        total = rng.random() < 0.5

        def drawn(kept: Database, rng: random.Random = rng, mode: str = mode, total: bool = total) -> Database:
            kind = CLEAN if mode == "trust" else rng.choice([CLEAN, CLEAN, DANGLING, WILD])
            db = state(rng, kind, kept)
            return without_null(db) if total and kind == CLEAN else db

        now = drawn({})
        assert view(now) == star(now["R"], subtree(now), now["U"])
        for _ in range(3):
            after = drawn(now)
            if rng.random() < 0.3:  # the commit of the view was lost: A goes on from a later state
                after = drawn(after)
            reaches = reaches_of(mode, now, after)
            assert refresh(now, after, reaches) == minus(view(after), view(now)), (seed, mode)
            relied[reaches["A"]] += 1
            now = after
    assert min(relied[reach] for reach in (REMOVED, REPLACED, ALL)) > 500, relied

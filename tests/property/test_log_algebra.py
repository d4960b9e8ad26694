"""The log storage as a model of thirty lines, checked on random histories before any SQL is believed.

storage   rows (part, seq, key, value); part 0 rows, part 2 tombstones: 'rows of this key older than seq are dead'
refresh   log:   a tombstone with the old value for every key that had one, a row for every key that has one now
          merge: the live row of the key updated or deleted in place, or a new row
facade    rows of part 0 without a younger tombstone of their key
feed      change of part 0 minus change of part 2, as bags of (key, value), between any two physical states
compact   dead rows and all tombstones go away
"""

from __future__ import annotations

import random
from collections import Counter

ROWS, TOMBSTONES = 0, 2
State = dict[int, int]
Row = tuple[int, int, int, int]


class Storage:
    def __init__(self, state: State) -> None:
        self.seq = 1
        self.rows: list[Row] = [(ROWS, 1, k, v) for k, v in state.items()]

    def dead_before(self) -> dict[int, int]:
        dead: dict[int, int] = {}
        for part, seq, key, _ in self.rows:
            if part == TOMBSTONES:
                dead[key] = max(seq, dead.get(key, 0))
        return dead

    def live(self) -> list[Row]:
        dead = self.dead_before()
        return [r for r in self.rows if r[0] == ROWS and r[1] >= dead.get(r[2], 0)]

    def facade(self) -> Counter[tuple[int, int]]:
        return Counter((key, value) for _, _, key, value in self.live())

    def log(self, old: State, new: State) -> None:
        self.seq += 1
        changed = [k for k in {*old, *new} if old.get(k) != new.get(k)]
        self.rows += [(TOMBSTONES, self.seq, k, old[k]) for k in changed if k in old]
        self.rows += [(ROWS, self.seq, k, new[k]) for k in changed if k in new]

    def merge(self, old: State, new: State) -> None:
        self.seq += 1
        changed = {k for k in {*old, *new} if old.get(k) != new.get(k)}
        gone = [r for r in self.live() if r[2] in changed]
        self.rows = [r for r in self.rows if r not in gone]
        self.rows += [(ROWS, self.seq, k, new[k]) for k in changed if k in new]

    def compact(self) -> None:
        self.rows = self.live()

    def weights(self) -> Counter[tuple[int, int]]:
        net: Counter[tuple[int, int]] = Counter()
        for part, _, key, value in self.rows:
            net[(key, value)] += 1 if part == ROWS else -1
        return net


def changed(rng: random.Random, state: State) -> State:
    new = dict(state)
    for key in range(6):
        dice = rng.random()
        if dice < 0.2:
            new.pop(key, None)
        elif dice < 0.5:
            new[key] = rng.randrange(3)
    return new


def test_any_order_of_log_merge_and_compaction_is_exact_for_readers_and_children() -> None:
    for seed in range(5000):
        rng = random.Random(seed)
        state = {k: rng.randrange(3) for k in range(6) if rng.random() < 0.6}
        storage = Storage(state)
        consumed, child = storage.weights(), Counter(state.items())
        for _ in range(rng.randrange(1, 9)):
            new = changed(rng, state)
            (storage.log if rng.random() < 0.6 else storage.merge)(state, new)
            state = new
            if rng.random() < 0.3:
                storage.compact()
            assert storage.facade() == Counter(state.items()), seed
            if rng.random() < 0.5:  # a child may lag behind several refreshes and compactions
                now = storage.weights()
                child.update(now)
                child.subtract(consumed)
                consumed = now
                assert +child == Counter(state.items()), seed
                assert min(child.values(), default=0) >= 0, seed

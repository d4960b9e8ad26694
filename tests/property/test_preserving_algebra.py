"""The rule of joins that keep a side, in bags, before its SQL.

    L ⊙ R    every row of L with what its matches in R make of it: LEFT, SEMI, ANTI, or a mark whether there is one
    Δ(L ⊙ R) = ΔL ⊙ Post(R)  +  A ⊙ (Post(R) | K)  −  A ⊙ (Pre(R) | K)
               A = rows of Pre(L) that match a changed row of R          K = join keys of ΔR

⊙ is linear in L: what becomes of a row depends on no other row of L.  Rows that match no changed row see the same
matches before and after.  Right rows that a row of A matches have its key, so they are within K.  FULL is LEFT and the
rows of R without a match.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

Row = tuple[int | None, ...]
Bag = Counter[Row]
Predicate = Callable[[Row, Row], bool]
NOTHING: Row = (None, None)


def equal(left: Row, right: Row) -> bool:
    return left[0] is not None and left[0] == right[0]


def equal_and_less(left: Row, right: Row) -> bool:
    return equal(left, right) and left[1] is not None and right[1] is not None and left[1] < right[1]


def preserving(kind: str, left: Bag, right: Bag, predicate: Predicate) -> Bag:
    """Weights of the left may be negative, those of the right are a state's."""
    assert all(n > 0 for n in right.values())
    found: Bag = Counter()
    for row, weight in left.items():
        matches = [(other, n) for other, n in right.items() if predicate(row, other)]
        if kind == "semi":
            found[row] += weight if matches else 0
        elif kind == "anti":
            found[row] += 0 if matches else weight
        elif kind == "mark":
            found[(*row, int(bool(matches)))] += weight
        else:
            for other, n in matches or [(NOTHING, 1)]:
                found[(*row, *other)] += weight * n
    return found


def plus(*bags: tuple[Bag, int]) -> Bag:
    total: Bag = Counter()
    for bag, sign in bags:
        for row, weight in bag.items():
            total[row] += sign * weight
    return Counter({row: weight for row, weight in total.items() if weight})


def change(kind: str, old: tuple[Bag, Bag], new: tuple[Bag, Bag], predicate: Predicate) -> Bag:
    delta_left, delta_right = (plus((after, 1), (before, -1)) for before, after in zip(old, new, strict=True))
    changed_keys = {row[0] for row in delta_right}
    again = Counter({row: n for row, n in old[0].items() if any(predicate(row, other) for other in delta_right)})
    after, before = (
        Counter({row: n for row, n in state.items() if row[0] in changed_keys}) for state in (new[1], old[1])
    )
    return plus(
        (preserving(kind, delta_left, new[1], predicate), 1),
        (preserving(kind, again, after, predicate), 1),
        (preserving(kind, again, before, predicate), -1),
    )


def full(left: Bag, right: Bag, predicate: Predicate) -> Bag:
    alone = preserving("anti", right, left, lambda right, left: predicate(left, right))
    return plus(
        (preserving("left", left, right, predicate), 1), (Counter({(*NOTHING, *r): n for r, n in alone.items()}), 1)
    )


def full_change(old: tuple[Bag, Bag], new: tuple[Bag, Bag], predicate: Predicate) -> Bag:
    swapped = change("anti", (old[1], old[0]), (new[1], new[0]), lambda right, left: predicate(left, right))
    return plus((change("left", old, new, predicate), 1), (Counter({(*NOTHING, *r): n for r, n in swapped.items()}), 1))


def some_rows(rng: random.Random) -> Iterable[Row]:
    return [(rng.choice([None, 0, 1, 2]), rng.choice([None, 0, 1])) for _ in range(rng.randint(0, 6))]


def moved(bag: Bag, rng: random.Random) -> Bag:
    kept = [row for row in bag.elements() if rng.random() < 0.6]
    return Counter([*kept, *(some_rows(rng) if rng.random() < 0.7 else [])])


@pytest.mark.parametrize("predicate", [equal, equal_and_less])
@pytest.mark.parametrize("kind", ["left", "semi", "anti", "mark", "full"])
def test_the_change_is_the_difference(kind: str, predicate: Predicate) -> None:
    rng = random.Random(5)
    for _ in range(2_000):
        old = (Counter(some_rows(rng)), Counter(some_rows(rng)))
        new = (moved(old[0], rng), moved(old[1], rng))
        if kind == "full":
            assert plus((full(*new, predicate), 1), (full(*old, predicate), -1)) == full_change(old, new, predicate)
            continue
        expected = plus((preserving(kind, *new, predicate), 1), (preserving(kind, *old, predicate), -1))
        assert change(kind, old, new, predicate) == expected

"""Which cells are measured, with which ways; the rest of the package only follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

SIZES = (10_000, 300_000, 2_700_000, 27_000_000)
LARGEST = SIZES[-1]
VIEWS = ("join", "aggregate")
WIDTHS = ("narrow", "wide")
#: inserts first: a model written by hand does not see deletes, so it is wrong from the first mixed change on
CHANGES = ("inserts", "mixed random", "mixed clustered")
KEYS = (10, 1_000, 100_000)

#: the models of a project; each is one way, `auto` is the package's own choice
WAYS = ("rebuild", "by_hand", "rewrite", "merge", "log", "auto")
#: cost does not follow the change but the view: at the largest size once per view
WHOLE_VIEW_WAYS = ("rebuild", "by_hand", "rewrite", "merge")
FOLLOWING_WAYS = ("log", "auto")

MUST_SHOW_SIZES = (2_700_000, 27_000_000)
MUST_SHOW_KEYS = (100, 10_000)
MUST_SHOW_WAYS = ("rebuild", "by_hand", "merge", "log", "auto")
MUST_SHOW_REPETITIONS = 5
READING_FROM = 300_000
SHARES = (0.001, 0.01, 0.05)
MUST_SHOW_SHARE = 0.01
#: equality by checksum alone from here on; below also by EXCEPT ALL
LARGE = 2_700_000


@dataclass(frozen=True)
class Scale:
    """Shrinks a run for a trial of the whole flow; results keep the nominal sizes."""

    factor: float = 1.0

    def rows(self, size: int) -> int:
        return size if self.factor == 1 else max(1_000, int(size * self.factor))

    def keys(self, keys: int) -> int:
        return keys if self.factor == 1 else max(10, int(keys * self.factor))


@dataclass(frozen=True)
class Cell:
    change: str
    keys: int
    ways: tuple[str, ...]
    part: str = "grid"


@dataclass(frozen=True)
class Plan:
    """One dbt project: a view over tables of one size, and the cells measured on it in order."""

    view: str
    width: str
    size: int
    cells: tuple[Cell, ...]
    shares: tuple[float, ...] = ()
    part: str = "grid"

    @property
    def name(self) -> str:
        return f"{self.view} {self.width} {self.size:,}"

    @property
    def ways(self) -> tuple[str, ...]:
        used = {way for cell in self.cells for way in cell.ways}
        if self.shares:
            used |= {"rebuild", "log"}
        return tuple(way for way in WAYS if way in used)


@dataclass(frozen=True)
class Filter:
    sizes: tuple[int, ...] = SIZES
    views: tuple[str, ...] = VIEWS
    widths: tuple[str, ...] = WIDTHS
    changes: tuple[str, ...] = CHANGES
    keys: tuple[int, ...] = KEYS
    ways: tuple[str, ...] = field(default=WAYS)


def grid(chosen: Filter) -> list[Plan]:
    plans = []
    for size in chosen.sizes:
        for view in chosen.views:
            for width in chosen.widths:
                cells = tuple(_cells(view, width, size, chosen))
                reads = view == "join" and size >= READING_FROM and not (size == LARGEST and width == "wide")
                if cells:
                    plans.append(Plan(view, width, size, cells, SHARES if reads else ()))
    return plans


def _cells(view: str, width: str, size: int, chosen: Filter) -> Iterator[Cell]:
    usual = ("mixed random", 1_000)
    pairs = [(c, k) for c in CHANGES for k in KEYS if c in chosen.changes and k in chosen.keys and k <= size // 2]
    if size < LARGEST:
        yield from (Cell(c, k, chosen.ways) for c, k in pairs)
        return
    if usual in pairs:  # first, while the ways that do not follow the change are not behind
        yield Cell(*usual, chosen.ways)
    if view == "join" and width == "narrow":
        following = tuple(w for w in chosen.ways if w in FOLLOWING_WAYS)
        yield from (Cell(c, k, following) for c, k in pairs if (c, k) != usual and following)


def must_show(chosen: Filter) -> list[Plan]:
    plans = []
    for size in MUST_SHOW_SIZES:
        if size in chosen.sizes:
            ways = tuple(w for w in MUST_SHOW_WAYS if w in chosen.ways)
            following = tuple(w for w in ways if w in FOLLOWING_WAYS) if size == LARGEST else ways
            cells = tuple(
                Cell("mixed random", keys, ways if keys == max(MUST_SHOW_KEYS) else following, "must-show")
                for keys in MUST_SHOW_KEYS
                if keys in chosen.keys or chosen.keys == KEYS
            )
            plans.append(Plan("join", "narrow", size, cells, (MUST_SHOW_SHARE,), "must-show"))
    return plans

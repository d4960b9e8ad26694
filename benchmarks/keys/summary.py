"""Paired ratios, medians and geometric means of what was measured; no formatting."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.keys.plan import Setting
from benchmarks.keys.views import SHAPES, VIEWS
from benchmarks.results import Record

SECONDS, ROWS_READ = "seconds", "rows_read"
FEWEST_PAIRS = 3
DELTA_SECONDS, DELTA_ROWS_READ = "delta_seconds", "delta_rows_read"


@dataclass(frozen=True)
class Ratio:
    """Of pairs measured in the same repetition."""

    pairs: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.pairs)

    @property
    def is_a_win(self) -> bool:
        """Only if every repetition says so, and there are enough of them to say anything."""
        return len(self.pairs) >= FEWEST_PAIRS and min(self.pairs) > 1


@dataclass
class Cell:
    """A view in one shape under one setting: the records of its strategies by repetition."""

    setting: Setting
    view: str
    shape: str
    records: dict[str, dict[int, Record]] = field(default_factory=lambda: defaultdict(dict))
    failures: dict[str, str] = field(default_factory=dict)

    def values(self, strategy: str, measure: str) -> dict[int, float]:
        found = self.records.get(strategy, {})
        return {number: record[measure] for number, record in found.items() if record.get(measure)}

    def median(self, strategy: str, measure: str = SECONDS) -> float | None:
        values = self.values(strategy, measure)
        return statistics.median(values.values()) if values else None

    def ratio(self, above: str, below: str, measure: str = SECONDS) -> Ratio | None:
        one, two = self.values(above, measure), self.values(below, measure)
        pairs = tuple(one[number] / two[number] for number in sorted(one.keys() & two.keys()))
        return Ratio(pairs) if pairs else None

    def wrong(self, strategy: str) -> int:
        return sum(not record["equal"] for record in self.records.get(strategy, {}).values())

    @property
    def rows(self) -> int:
        return max((r["rows"] for found in self.records.values() for r in found.values()), default=0)


def cells_of(records: Iterable[Record]) -> list[Cell]:
    found: dict[tuple[Setting, str, str], Cell] = {}
    for record in records:
        if record["kind"] in ("refresh", "failed"):
            setting = Setting(record["scale"], record["share"], record["change"])
            key = (setting, record["view"], record["shape"])
            cell = found.setdefault(key, Cell(*key))
            if record["kind"] == "failed":
                cell.failures[record["strategy"]] = record["message"]
            else:
                cell.records[record["strategy"]][record["repetition"]] = record
    names = list(VIEWS)
    return sorted(found.values(), key=lambda cell: (SHAPES.index(cell.shape), names.index(cell.view)))


def settings_of(cells: Iterable[Cell]) -> list[Setting]:
    """The paper's changes first, small scales before large ones."""
    order = ("policy", "facts", "attributes", "nothing")
    return sorted({cell.setting for cell in cells}, key=lambda s: (order.index(s.change), s.scale, -s.share))


def geometric_mean(cells: Iterable[Cell], above: str, below: str, measure: str = SECONDS) -> float | None:
    medians = [found.median for cell in cells if (found := cell.ratio(above, below, measure)) is not None]
    return statistics.geometric_mean(medians) if medians else None

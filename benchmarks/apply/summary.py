"""Medians and ratios of what was measured; no formatting."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.apply.compaction import refreshes_between
from benchmarks.apply.grid import CHANGES, LARGEST, WHOLE_VIEW_WAYS
from benchmarks.results import Record

#: the commit tells which way `auto` took, also where both ways are called append
CHOICES = {"MERGE": "merge", "UPDATE": "merge", "WRITE": "log", "CREATE OR REPLACE TABLE AS SELECT": "rewrite"}
ENGINE_WAYS = ("rewrite", "merge", "log")
View = tuple[str, str, int]


@dataclass
class Way:
    """One way in one cell."""

    seconds: list[float] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    is_borrowed: bool = False

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def last(self) -> Record:
        return self.records[-1]


@dataclass
class CellResult:
    view: View
    change: str
    keys: int
    ways: dict[str, Way] = field(default_factory=lambda: defaultdict(Way))

    @property
    def choice(self) -> str:
        """The way that `auto` took, by its last commit."""
        return CHOICES.get(self.ways["auto"].last["operation"], "?") if "auto" in self.ways else ""

    @property
    def best(self) -> str:
        """The fastest of the ways that the package can choose from."""
        known = [w for w in ENGINE_WAYS if w in self.ways]
        return min(known, key=lambda w: self.ways[w].median) if known else ""

    @property
    def choice_ratio(self) -> float | None:
        """Seconds of the chosen way over those of the best: what the rule loses, without the noise of a third model."""
        if self.choice not in self.ways or not self.best:
            return None
        return self.ways[self.choice].median / self.ways[self.best].median


def cells_of(records: Iterable[Record], part: str) -> list[CellResult]:
    found: dict[tuple[View, str, int], CellResult] = {}
    for record in records:
        if record["kind"] == "refresh" and record["part"] == part:
            view = (record["view"], record["width"], record["size"])
            key = (view, record["change"], record["keys"])
            way = found.setdefault(key, CellResult(*key)).ways[record["model"]]
            way.seconds.append(record["seconds"])
            way.records.append(record)
    cells = sorted(found.values(), key=lambda c: (c.view[2], c.view[0], c.view[1], CHANGES.index(c.change), c.keys))
    _borrow(cells)
    return cells


def _borrow(cells: list[CellResult]) -> None:
    """At the largest size some ways were measured in one cell per view: their cost does not follow the change."""
    for measured in cells:
        for way in WHOLE_VIEW_WAYS:
            known = measured.ways.get(way)
            if known is None or known.is_borrowed or measured.view[2] != LARGEST:
                continue
            for cell in cells:
                if cell.view == measured.view and way not in cell.ways:
                    cell.ways[way] = Way(known.seconds, known.records, is_borrowed=True)


def paired_ratios(cell: CellResult, above: str, below: str) -> list[float]:
    """One ratio per repetition that has both."""
    one, two = ({r["repetition"]: r["seconds"] for r in cell.ways[w].records} for w in (above, below))
    return [one[r] / two[r] for r in sorted(one.keys() & two.keys())]


def compaction_seconds(records: Iterable[Record]) -> dict[View, float]:
    found: dict[View, list[float]] = defaultdict(list)
    for record in records:
        if record["kind"] == "compaction" and record["refreshes"]:
            found[record["view"], record["width"], record["size"]].append(record["seconds"])
    return {view: statistics.median(seconds) for view, seconds in found.items()}


def amortised(cell: CellResult, compactions: dict[View, float]) -> tuple[int, float] | None:
    """Refreshes between two compactions, and what a refresh by log costs with its part of one."""
    if cell.view not in compactions or "log" not in cell.ways:
        return None
    log = cell.ways["log"]
    dead = (log.last["updated"] or 0) + (log.last["deleted"] or 0)
    between = refreshes_between(dead, log.last["total_rows"] or cell.view[2])
    return between, log.median + compactions[cell.view] / between

"""Asked and measured: the numbers that decide whether foreign keys keep their promise."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from benchmarks.keys import summary
from benchmarks.keys.plan import Setting
from benchmarks.keys.strategies import STRATEGIES, TABLE, TRUST, UNOPTIMISED, VERIFY
from benchmarks.keys.summary import Cell, geometric_mean
from benchmarks.keys.views import GROUPED, PLAIN
from benchmarks.markdown import table

SHARE = 2000
SCALES = (1.0, 10.0)
#: rows read are asked of every one of these
STARS_AND_SNOWFLAKES = ("ss", "cs", "ws", "snwf")


Measured = Callable[[list[Cell], float], str]


def must_show(cells: list[Cell]) -> str:
    """Geometric means of the views without GROUP BY; those with it in brackets."""
    updated = "100 dimension rows updated"
    rows: list[tuple[str, str, str, Measured]] = [
        ("delta only, unoptimised / trust", "≥ 3", "≥ 4", _means(UNOPTIMISED, TRUST, summary.DELTA_SECONDS)),
        ("whole refresh, unoptimised / trust", "≥ 1.5", "≥ 3", _means(UNOPTIMISED, TRUST)),
        ("whole refresh, table / trust", "≥ 2", "≥ 10", _means(TABLE, TRUST)),
        ("rows read, unoptimised / trust, least star or snowflake", "≥ 10", "≥ 10", _least(summary.ROWS_READ)),
        ("the same, delta only", "", "", _least(summary.DELTA_ROWS_READ)),
        ("whole refresh, verify / trust", "≤ 1.5", "≤ 2", _means(VERIFY, TRUST)),
        (f"{updated}: trust / unoptimised", "≤ 1.1", "≤ 1.1", _means(TRUST, UNOPTIMISED, change="attributes")),
        (f"{updated}: verify / unoptimised", "≤ 1.1", "≤ 1.1", _means(VERIFY, UNOPTIMISED, change="attributes")),
        ("same change, SF10 / SF1, whole refresh, trust", "", "≤ 1.5", _growth),
        ("refreshes of ours equal to recompute", "all", "all", _equal),
    ]
    header = ["what", "asked SF1", "measured SF1", "asked SF10", "measured SF10"]
    small, large = SCALES
    return table(header, [[what, one, of(cells, small), ten, of(cells, large)] for what, one, ten, of in rows])


def _at(cells: Iterable[Cell], scale: float, change: str, shape: str) -> list[Cell]:
    """The share plays no part in updates of a fixed number of rows."""
    found = [c for c in cells if c.setting.scale == scale and c.setting.change == change and c.shape == shape]
    return [c for c in found if change != "policy" or c.setting.share == SHARE]


def _means(above: str, below: str, measure: str = summary.SECONDS, change: str = "policy") -> Measured:
    def measured(cells: list[Cell], scale: float) -> str:
        plain, grouped = (
            geometric_mean(_at(cells, scale, change, shape), above, below, measure) for shape in (PLAIN, GROUPED)
        )
        if plain is None:
            return "–"
        mine = _at(cells, scale, change, PLAIN)
        views = sum(c.ratio(above, below, measure) is not None for c in mine)  # a model that failed has none
        return (
            f"{plain:.2f} of {views} views"
            + ("" if views == len(mine) else f" ({len(mine) - views} left out)")
            + (f" ({grouped:.2f})" if grouped is not None else "")
        )

    return measured


def _least(measure: str) -> Measured:
    def measured(cells: list[Cell], scale: float) -> str:
        chosen = [c for c in _at(cells, scale, "policy", PLAIN) if c.view.split("_")[0] in STARS_AND_SNOWFLAKES]
        ratios = [(r.median, c.view) for c in chosen if (r := c.ratio(UNOPTIMISED, TRUST, measure)) is not None]
        return "{:.1f} ({})".format(*min(ratios)) if ratios else "–"

    return measured


def _growth(cells: list[Cell], scale: float) -> str:
    """Changes are of one size when the share shrinks as the tables grow."""
    if scale == SCALES[0]:
        return ""
    small = {c.view: c for c in _at(cells, SCALES[0], "policy", PLAIN)}
    same = Setting(scale, round(SHARE * scale / SCALES[0]), "policy")
    found = []
    for cell in cells:
        if cell.setting == same and cell.shape == PLAIN and cell.view in small:
            large, little = cell.median(TRUST), small[cell.view].median(TRUST)
            if large and little:
                found.append(f"{cell.view} {large / little:.2f}")
    return ", ".join(found) or "–"


def _equal(cells: list[Cell], scale: float) -> str:
    """Of every change and share."""
    ours = [s.name for s in STRATEGIES.values() if s.is_ours]
    mine = [c for c in cells if c.setting.scale == scale]
    all_of = sum(len(c.records.get(s, {})) for c in mine for s in ours)
    wrong = sum(c.wrong(s) for c in mine for s in ours)
    failed = sum(s in c.failures for c in mine for s in ours)
    return (
        f"{all_of - wrong} of {all_of}" + (f", {failed} models failed" if failed else "") if all_of or failed else "–"
    )

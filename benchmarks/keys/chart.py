"""Ratios per view as bars, as an SVG written by hand: no plotting library is a dependency."""

from __future__ import annotations

import math

from benchmarks.keys import summary
from benchmarks.keys.strategies import TABLE, TRUST, UNOPTIMISED
from benchmarks.keys.summary import Cell
from benchmarks.keys.views import GROUPED

#: name, colour, strategy over trust, measure
BARS = (
    ("unoptimised / trust, delta only", "#1f77b4", UNOPTIMISED, summary.DELTA_SECONDS),
    ("unoptimised / trust, whole refresh", "#7fb3dc", UNOPTIMISED, summary.SECONDS),
    ("table / trust, whole refresh", "#e15759", TABLE, summary.SECONDS),
)
LEFT, TOP, WIDTH, BAR, GAP = 150, 86, 560, 9, 10
TEXT = 'font-family="sans-serif" font-size="12" fill="#222222"'
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def chart(cells: list[Cell], title: str) -> str:
    """Bars begin at 1 on a logarithmic axis: to the right trust is faster, to the left it is slower."""
    height = TOP + len(cells) * (len(BARS) * BAR + GAP) + 30
    ratios = [r.median for c in cells for _, _, above, m in BARS if (r := c.ratio(above, TRUST, m)) is not None]
    axis = Axis(ratios)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{height}">',
        f'<rect width="{LEFT + WIDTH + 60}" height="{height}" fill="white"/>',
        f'<text x="10" y="20" {TEXT} font-weight="bold">{title}: seconds over those of foreign keys trusted,'
        " medians of paired ratios</text>",
        *_legend(),
        *axis.lines(height),
    ]
    for number, cell in enumerate(cells):
        y = TOP + number * (len(BARS) * BAR + GAP)
        name = f"{cell.view}, grouped" if cell.shape == GROUPED else cell.view
        parts.append(f'<text x="{LEFT - 8}" y="{y + 18}" {TEXT} text-anchor="end">{name}</text>')
        for place, (_, color, above, measure) in enumerate(BARS):
            ratio = cell.ratio(above, TRUST, measure)
            if ratio is not None:
                parts += _bar(axis, y + place * BAR, color, ratio.median)
    return "\n".join([*parts, "</svg>"]) + "\n"


class Axis:
    def __init__(self, ratios: list[float]) -> None:
        low, high = min([1.0, *ratios]), max([2.0, *ratios])
        self.low = max((t for t in TICKS if t <= low), default=TICKS[0])
        self.high = min((t for t in TICKS if t >= high), default=TICKS[-1])

    def x(self, ratio: float) -> float:
        held = min(max(ratio, self.low), self.high)
        return LEFT + WIDTH * math.log(held / self.low) / math.log(self.high / self.low)

    def lines(self, height: int) -> list[str]:
        parts = []
        for tick in TICKS:
            if self.low <= tick <= self.high:
                x, color = self.x(tick), "#222222" if tick == 1 else "#dddddd"
                parts.append(f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{height - 24}" stroke="{color}"/>')
                parts.append(f'<text x="{x:.1f}" y="{height - 8}" {TEXT} text-anchor="middle">{tick:g}</text>')
        return parts


def _legend() -> list[str]:
    parts = []
    for number, (name, color, *_) in enumerate(BARS):
        x = 10 + number * 235
        parts.append(f'<rect x="{x}" y="38" width="14" height="10" fill="{color}"/>')
        parts.append(f'<text x="{x + 20}" y="48" {TEXT}>{name}</text>')
    return parts


def _bar(axis: Axis, y: int, color: str, ratio: float) -> list[str]:
    start, end = sorted((axis.x(1), axis.x(ratio)))
    return [f'<rect x="{start:.1f}" y="{y}" width="{max(end - start, 0.5):.1f}" height="{BAR - 1}" fill="{color}"/>']

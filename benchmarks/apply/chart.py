"""Seconds per way against the size of the view, as an SVG written by hand: no plotting library is a dependency."""

from __future__ import annotations

import math

from benchmarks.apply.grid import VIEWS, WAYS, WIDTHS
from benchmarks.apply.summary import CellResult

CHANGE, KEYS = "mixed random", 1_000
COLORS = {
    "rebuild": "#555555",
    "by_hand": "#b07aa1",
    "rewrite": "#9c755f",
    "merge": "#e15759",
    "log": "#1f77b4",
    "auto": "#2ca02c",
}
PANEL_WIDTH, PANEL_HEIGHT, LEFT, TOP, GAP = 300, 220, 60, 70, 70
TEXT = 'font-family="sans-serif" font-size="12" fill="#222222"'
Curve = list[tuple[int, float]]


def chart(cells: list[CellResult]) -> str:
    curves = _curves(cells)
    panels = [(v, w) for v in VIEWS for w in WIDTHS if (v, w) in curves]
    columns, lines = min(2, max(1, len(panels))), max(1, math.ceil(len(panels) / 2))
    width, height = LEFT + columns * (PANEL_WIDTH + GAP) + 70, TOP + lines * (PANEL_HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="22" {TEXT} font-weight="bold">Seconds of one dbt refresh by rows of the view: '
        f"{KEYS:,} keys changed, {CHANGE} (both axes logarithmic)</text>",
        *_legend(),
    ]
    every = [point for panel in panels for curve in curves[panel].values() for point in curve]
    if every:
        scale = Scale([size for size, _ in every], [s for _, s in every])
        for number, panel in enumerate(panels):
            x = LEFT + number % 2 * (PANEL_WIDTH + GAP)
            y = TOP + number // 2 * (PANEL_HEIGHT + GAP)
            parts += _panel(x, y, ", ".join(panel), curves[panel], scale)
    return "\n".join([*parts, "</svg>"]) + "\n"


class Scale:
    """Logarithmic positions; both ends rounded to where a tick is."""

    def __init__(self, sizes: list[int], seconds: list[float]) -> None:
        self.sizes = sorted(set(sizes))
        self.first, self.last = math.log10(self.sizes[0]) - 0.15, math.log10(self.sizes[-1]) + 0.15
        ticks = [m * 10.0**e for e in range(-2, 5) for m in (1, 2, 5)]
        low = max((t for t in ticks if t <= min(seconds)), default=ticks[0])
        high = min((t for t in ticks if t >= max(seconds)), default=ticks[-1])
        self.ticks = [t for t in ticks if low <= t <= max(high, low * 2)]

    def x(self, size: int) -> float:
        return (math.log10(size) - self.first) / (self.last - self.first) * PANEL_WIDTH

    def y(self, seconds: float) -> float:
        low, high = math.log10(self.ticks[0]), math.log10(self.ticks[-1])
        return PANEL_HEIGHT * (1 - (math.log10(seconds) - low) / (high - low))


def _curves(cells: list[CellResult]) -> dict[tuple[str, str], dict[str, Curve]]:
    found: dict[tuple[str, str], dict[str, Curve]] = {}
    for cell in cells:
        if (cell.change, cell.keys) == (CHANGE, KEYS):
            curves = found.setdefault(cell.view[:2], {})
            for name, way in cell.ways.items():
                curves.setdefault(name, []).append((cell.view[2], way.median))
    return {panel: {name: sorted(curve) for name, curve in curves.items()} for panel, curves in found.items()}


def _legend() -> list[str]:
    parts = []
    for number, way in enumerate(WAYS):
        x = LEFT + number * 90
        parts.append(f'<line x1="{x}" y1="40" x2="{x + 22}" y2="40" {_stroke(way)}/>')
        parts.append(f'<text x="{x + 27}" y="44" {TEXT}>{way}</text>')
    return parts


def _stroke(way: str) -> str:
    dashes = ' stroke-dasharray="5 4"' if way == "auto" else ""  # lies on the curve of the way it takes
    return f'stroke="{COLORS[way]}" stroke-width="2" fill="none"{dashes}'


def _panel(x: int, y: int, title: str, curves: dict[str, Curve], scale: Scale) -> list[str]:
    parts = [f'<g transform="translate({x},{y})">', f'<text x="0" y="-6" {TEXT} font-weight="bold">{title}</text>']
    for tick in scale.ticks:
        at = scale.y(tick)
        parts.append(f'<line x1="0" y1="{at:.1f}" x2="{PANEL_WIDTH}" y2="{at:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="-6" y="{at + 4:.1f}" {TEXT} text-anchor="end">{tick:g}</text>')
    for size in scale.sizes:
        name = f"{size / 1e6:g} M" if size >= 1e6 else f"{size / 1e3:g} k"
        parts.append(f'<text x="{scale.x(size):.1f}" y="{PANEL_HEIGHT + 18}" {TEXT} text-anchor="middle">{name}</text>')
    for way in WAYS:
        points = [(scale.x(size), scale.y(seconds)) for size, seconds in curves.get(way, [])]
        if points:
            line = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
            parts.append(f'<polyline points="{line}" {_stroke(way)}/>')
            parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{COLORS[way]}"/>' for px, py in points]
    parts.append(f'<rect width="{PANEL_WIDTH}" height="{PANEL_HEIGHT}" fill="none" stroke="#888888"/>')
    return [*parts, "</g>"]

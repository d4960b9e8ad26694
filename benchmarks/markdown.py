"""Numbers and tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def seconds(value: float) -> str:
    """
    >>> seconds(0.1234), seconds(3.21), seconds(73.4)
    ('0.12', '3.2', '73')
    """
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 20 else f"{value:.0f}"


def short(value: float) -> str:
    """
    >>> short(812), short(2_685_605), short(54_000)
    ('812', '2.7 M', '54 k')
    """
    if value >= 999_500:
        return f"{value / 1e6:.1f} M"
    return f"{value / 1e3:.0f} k" if value >= 10_000 else f"{value:.0f}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

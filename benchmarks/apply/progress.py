"""Weights of the grid's cells, so that the bar tells the time left."""

from __future__ import annotations

from benchmarks.apply.grid import Cell, Plan
from benchmarks.progress import ProgressBar


def weight(plan: Plan, cell: Cell) -> float:
    """Seconds of one cell, roughly: each refresh costs a constant, ways that touch the whole view their share of it."""
    whole = sum(way not in ("log", "auto") for way in cell.ways)
    return 10 + 12 * len(cell.ways) + plan.size / 100_000 * (1 + whole) * (3 if plan.width == "wide" else 1)


def building(plan: Plan) -> float:
    return 10 + plan.size / 100_000 * len(plan.ways) * (3 if plan.width == "wide" else 1)


def reading_weight(plan: Plan) -> float:
    return len(plan.shares) * (30 + plan.size / 100_000 * (3 if plan.width == "wide" else 1))


def whole_weight(plan: Plan) -> float:
    return building(plan) + sum(weight(plan, cell) for cell in plan.cells) + reading_weight(plan)


class Progress(ProgressBar):
    def __init__(self, plans: list[Plan]) -> None:
        super().__init__(sum(len(plan.cells) for plan in plans), sum(map(whole_weight, plans)))

    def built(self, plan: Plan) -> None:
        self.advance(building(plan))

    def skip(self, plan: Plan) -> None:
        self.advance(whole_weight(plan), cells=len(plan.cells))

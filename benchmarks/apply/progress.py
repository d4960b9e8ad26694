"""The progress bar: current cell, cells done, time left by the weight of what is to come."""

from __future__ import annotations

from types import TracebackType

from rich import progress as bar

from benchmarks.apply.grid import Cell, Plan


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


class Progress:
    """A line per finished project as well, for logs of runs without a terminal."""

    def __init__(self, plans: list[Plan]) -> None:
        self.cells = sum(len(plan.cells) for plan in plans)
        self.done = 0
        self.bar = bar.Progress(
            bar.TextColumn("{task.fields[cells]}"),
            bar.BarColumn(bar_width=24),
            bar.TextColumn("{task.percentage:>3.0f} %"),
            bar.TimeElapsedColumn(),
            bar.TextColumn("left"),
            bar.TimeRemainingColumn(),
            bar.TextColumn("{task.description}"),
            speed_estimate_period=7_200,
        )
        total = sum(map(whole_weight, plans))
        self.task = self.bar.add_task("starting Spark", total=total, cells=f"0/{self.cells}")

    def __enter__(self) -> Progress:
        self.bar.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.bar.stop()

    def show(self, text: str) -> None:
        self.bar.update(self.task, description=text)
        if not self.bar.console.is_terminal:
            self.bar.console.print(f"{self.done}/{self.cells} {text}", highlight=False)

    def advance(self, amount: float, cells: int = 0) -> None:
        self.done += cells
        self.bar.update(self.task, advance=amount, cells=f"{self.done}/{self.cells}")

    def built(self, plan: Plan) -> None:
        self.advance(building(plan))

    def skip(self, plan: Plan) -> None:
        self.advance(whole_weight(plan), cells=len(plan.cells))

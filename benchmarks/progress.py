"""The progress bar: what is going on, cells done, time left by the weight of what is to come."""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar

from rich import progress as bar

Bar = TypeVar("Bar", bound="ProgressBar")


class ProgressBar:
    """A line per step as well, for logs of runs without a terminal."""

    def __init__(self, cells: int, weight: float) -> None:
        self.cells = cells
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
        self.task = self.bar.add_task("starting Spark", total=weight, cells=f"0/{self.cells}")

    def __enter__(self: Bar) -> Bar:
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

"""What is measured: a plan per view, and how long it will take."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.keys.strategies import STRATEGIES, measurable
from benchmarks.keys.views import VIEWS, View

QUICK_VIEWS = ("ss_1dim", "snwf", "chain_filter", "ws_3dim")
LARGE_VIEWS = ("ss_3dim", "snwf", "chain")
#: rows of the largest view at scale factor 1, in millions: only for the progress bar
_MILLIONS = {"arbt": 20.0, "chain": 6.0, "ss": 2.7, "cs": 1.4}


@dataclass(frozen=True)
class Setting:
    """What runs must have in common to be compared in one table."""

    scale: float
    share: int
    change: str

    @property
    def name(self) -> str:
        """
        >>> Setting(1, 2000, "policy").name
        'SF1, .05 %, policy'
        """
        percent = f"{100 / self.share:.3f}".rstrip("0").removesuffix(".").removeprefix("0")
        amount = {"attributes": "100 rows", "nothing": "none"}.get(self.change, f"{percent} %")
        return f"SF{self.scale:g}, {amount}, {self.change}"


@dataclass(frozen=True)
class Plan:
    setting: Setting
    view: View
    strategies: tuple[str, ...]
    shapes: tuple[str, ...]
    repetitions: int
    warm_ups: int

    @property
    def step(self) -> tuple[float | int | str, ...]:
        """Names the plan in the results, for --resume."""
        return (self.setting.scale, self.setting.share, self.setting.change, self.view.name)

    @property
    def models(self) -> list[tuple[str, str]]:
        return measurable(self.strategies, self.shapes)

    @property
    def rounds(self) -> int:
        return self.repetitions + self.warm_ups

    @property
    def round_weight(self) -> float:
        """Seconds of one round, roughly."""
        name = self.view.name
        millions = self.setting.scale * _MILLIONS.get(name, _MILLIONS.get(name.split("_")[0], 0.7))
        ours = sum(STRATEGIES[strategy].is_ours for _, strategy in self.models)
        return 5 + 4 * millions + (3 + millions) * len(self.models) + 2 * ours

    @property
    def weight(self) -> float:
        return self.round_weight * (self.rounds + 2)  # loading and the first builds count as two


def plans(
    setting: Setting,
    views: tuple[str, ...],
    strategies: tuple[str, ...],
    shapes: tuple[str, ...],
    repetitions: int,
    warm_ups: int,
) -> list[Plan]:
    return [Plan(setting, VIEWS[name], strategies, shapes, repetitions, warm_ups) for name in VIEWS if name in views]

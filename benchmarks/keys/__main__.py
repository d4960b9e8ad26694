"""The command line; see the package's docstring."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks.keys import data, policy
from benchmarks.keys.plan import LARGE_VIEWS, QUICK_VIEWS, Plan, Setting, plans
from benchmarks.keys.project import model_text
from benchmarks.keys.report import write_report
from benchmarks.keys.sources import CHANGES
from benchmarks.keys.strategies import DEFAULT, STRATEGIES
from benchmarks.keys.views import SHAPES, VIEWS
from benchmarks.progress import ProgressBar
from benchmarks.results import DEFAULT_FOLDER, Results, machine


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keys", description=__doc__)
    parser.add_argument("command", nargs="?", choices=("run", "report", "show"), default="run")
    parser.add_argument("--scale", type=float, default=1.0, help="scale factor of the data (1: 2.9 M sales)")
    parser.add_argument("--share", type=int, default=2000, help="one row of so many comes, and one goes (2000: .05 %%)")
    parser.add_argument("--change", choices=CHANGES, default="policy")
    parser.add_argument("--views", nargs="+", default=["all"], choices=("all", *VIEWS))
    parser.add_argument("--shapes", nargs="+", default=SHAPES, choices=SHAPES)
    parser.add_argument("--strategies", nargs="+", default=DEFAULT, choices=tuple(STRATEGIES))
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--warm-ups", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="SF0.1, .5 %%, four views without GROUP BY, twice")
    parser.add_argument("--large", action="store_true", help="SF10, three views without GROUP BY, three times")
    parser.add_argument("--resume", action="store_true", help="leave out views that the results hold already")
    parser.add_argument("--results", type=Path, default=DEFAULT_FOLDER, help="folder of the results")
    parser.add_argument("--data", type=Path, default=data.DEFAULT_FOLDER, help="folder of the generated data")
    given = parser.parse_args()
    if given.quick:
        given.scale, given.share, given.repetitions, given.warm_ups = 0.1, 200, 2, 1
        given.views, given.shapes = QUICK_VIEWS, SHAPES[:1]
    if given.large:
        given.scale, given.repetitions, given.warm_ups = 10.0, 3, 1
        given.views, given.shapes = LARGE_VIEWS, SHAPES[:1]
    if given.repetitions + given.warm_ups > policy.most_rounds(given.share):
        parser.error(f"with --share {given.share} there are at most {policy.most_rounds(given.share)} rounds")
    return given


def main() -> None:
    given = arguments()
    if given.command == "show":
        show(chosen(given))
        return
    results = Results(given.results, "keys")
    if given.command == "run":
        run(given, results)
    all_right = write_report(results)
    print(f"wrote {results.folder.name}/keys.md and keys.svg")
    if not all_right:
        sys.exit("a refresh of ours was wrong or failed: see keys.md")


def chosen(given: argparse.Namespace) -> list[Plan]:
    views = tuple(VIEWS) if "all" in given.views else tuple(given.views)
    setting = Setting(given.scale, given.share, given.change)
    shapes, strategies = tuple(given.shapes), tuple(name for name in STRATEGIES if name in given.strategies)
    return plans(setting, views, strategies, shapes, given.repetitions, given.warm_ups)


def show(wanted: list[Plan]) -> None:
    for plan in wanted:
        for shape, strategy in plan.models:
            print(f"-- {plan.view.name}, {shape}, {strategy}\n{model_text(plan.view, shape, strategy)}")


def run(given: argparse.Namespace, results: Results) -> None:
    from benchmarks.keys.runner import Runner

    wanted = chosen(given)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that the tables are removed
    with (
        tempfile.TemporaryDirectory(prefix="ivm_bench_", ignore_cleanup_errors=True) as folder,
        ProgressBar(len(wanted), sum(plan.weight for plan in wanted)) as progress,
    ):
        generated = data.Data(given.scale, given.data)
        if not generated.is_there:
            progress.show(f"generating data, scale factor {given.scale:g}")
            generated.make()
        results.append([machine() | {"repetitions": given.repetitions, "scale": given.scale}])
        Runner(results, generated, Path(folder), given.resume).run(wanted, progress)


if __name__ == "__main__":
    main()

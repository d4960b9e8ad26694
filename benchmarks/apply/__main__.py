"""The command line; see the package's docstring."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks.apply import grid
from benchmarks.apply.progress import Progress
from benchmarks.apply.report import write_report
from benchmarks.results import DEFAULT_FOLDER, Results, machine


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.apply", description=__doc__)
    parser.add_argument("command", nargs="?", choices=("run", "report"), default="run")
    parser.add_argument("--must-show", action="store_true", help="only the cells of the headline table")
    parser.add_argument("--quick", action="store_true", help="10 k and 300 k rows, one repetition")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--resume", action="store_true", help="leave out what the results hold already")
    parser.add_argument("--sizes", type=_number, nargs="+", default=grid.SIZES, metavar="ROWS", help="10k 2.7M …")
    parser.add_argument("--views", nargs="+", default=grid.VIEWS, choices=grid.VIEWS)
    parser.add_argument("--widths", nargs="+", default=grid.WIDTHS, choices=grid.WIDTHS)
    parser.add_argument("--changes", nargs="+", default=grid.CHANGES, choices=grid.CHANGES)
    parser.add_argument("--keys", type=_number, nargs="+", default=grid.KEYS)
    parser.add_argument("--ways", nargs="+", default=grid.WAYS, choices=grid.WAYS)
    parser.add_argument("--source-deletion-vectors", action="store_true", help="sources with deletion vectors")
    parser.add_argument("--results", type=Path, help="folder of the results")
    parser.add_argument("--scale", type=float, default=1.0, help=argparse.SUPPRESS)  # a trial of the whole flow
    parser.add_argument("--no-warm-up", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _number(text: str) -> int:
    """
    >>> _number("2.7M"), _number("10k")
    (2700000, 10000)
    """
    unit = {"k": 1_000, "M": 1_000_000}.get(text[-1:], 1)
    return round(float(text.rstrip("kM").replace("_", "")) * unit)


def main() -> None:
    given = arguments()
    trial = Path(tempfile.gettempdir()) / "ivm_bench_trial"  # trials must not mix with measurements
    results = Results(given.results or (DEFAULT_FOLDER if given.scale == 1 else trial), "apply")
    if given.command == "run":
        run(given, results)
    write_report(results)
    print(f"wrote {results.folder.name}/apply.md and apply.svg")


def run(given: argparse.Namespace, results: Results) -> None:
    from benchmarks.apply.runner import Options, Runner

    sizes = tuple(given.sizes[:2]) if given.quick else tuple(given.sizes)
    chosen = grid.Filter(
        sizes, tuple(given.views), tuple(given.widths), tuple(given.changes), tuple(given.keys), tuple(given.ways)
    )
    plans = (grid.must_show if given.must_show else grid.grid)(chosen)
    if not plans:
        raise SystemExit("no cell fits these options")
    repetitions = 1 if given.quick else given.repetitions
    options = Options(repetitions, grid.Scale(given.scale), given.resume, given.source_deletion_vectors)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that the tables are removed
    with (
        tempfile.TemporaryDirectory(prefix="ivm_bench_", ignore_cleanup_errors=True) as folder,
        Progress(plans) as shown,
    ):
        runner = Runner(results, options, Path(folder))
        about = {"repetitions": options.repetitions, "scale": given.scale}
        results.append([machine() | about | {"source_deletion_vectors": options.source_deletion_vectors}])
        for view in () if given.no_warm_up else dict.fromkeys(plan.view for plan in plans):
            shown.show(f"warming up: {view}")
            small = grid.Plan(view, "narrow", 2_000, (grid.Cell("mixed random", 100, chosen.ways),))
            runner.warm_up_jvm(small)
        runner.run(plans, shown)
        runner.spark.stop()


if __name__ == "__main__":
    main()

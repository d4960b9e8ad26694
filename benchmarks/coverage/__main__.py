"""The command line; see the package's docstring."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from benchmarks.coverage.check import EQUAL
from benchmarks.coverage.data import Data, Query
from benchmarks.coverage.report import ENGINES, PAGE, write_page
from benchmarks.coverage.run import Settings, check_on_duckdb, run_all
from benchmarks.generator import DEFAULT_FOLDER as DATA_FOLDER
from benchmarks.results import DEFAULT_FOLDER, Results


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--queries", nargs="+", default=[], metavar="NAME", help="h01 … h22, ds01 … ds99; default: all")
    parser.add_argument("--plan-only", action="store_true", help="strategies and reasons; nothing is run or written")
    parser.add_argument("--report", action="store_true", help="only the page again, from the stored results")
    parser.add_argument("--spark", action="store_true", help="on Spark and Delta instead of DuckDB")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=0.0, help="seconds per query; default: 60, on Spark 600")
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--foreign-keys", action="store_true", help="declare foreign keys too; the changes break some")
    parser.add_argument("--apply", choices=("auto", "merge", "log"), default="auto")
    parser.add_argument("--results", type=Path, default=DEFAULT_FOLDER, help="folder of the results")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--data", type=Path, default=DATA_FOLDER, help="folder of the generated data")
    return parser.parse_args()


def chosen(queries: list[Query], names: list[str]) -> list[Query]:
    unknown = set(names) - {q.name for q in queries}
    if unknown:
        sys.exit(f"no such query: {', '.join(sorted(unknown))}")
    return [q for q in queries if not names or q.name in names]


def main() -> None:
    given = arguments()
    results = Results(given.results, "coverage")
    if given.report:
        write_page(results, given.page)
        return
    data = Data(given.scale, given.data)
    data.make()
    queries = chosen(data.queries(), given.queries)
    limit = given.limit or (600.0 if given.spark else 60.0)
    settings = Settings(given.rounds, given.seed, limit, given.foreign_keys, given.apply)
    if given.plan_only:
        found = run_all(queries, data, settings, None, None, "")
        print(", ".join(f"{count} {name}" for name, count in Counter(p.strategy for _, p, _ in found).items()))
        return
    if given.spark:
        from benchmarks.coverage.on_spark import SCHEMA, SparkChecks

        with SparkChecks(data, queries, settings) as checks:
            found = run_all(queries, data, settings, checks.check, results, ENGINES[1], SCHEMA)
    else:
        found = run_all(queries, data, settings, check_on_duckdb, results, ENGINES[0])
    print(", ".join(f"{count} {name}" for name, count in Counter(c.verdict or "full" for _, _, c in found).items()))
    write_page(results, given.page)
    if any(c.verdict not in ("", EQUAL) for _, _, c in found):
        sys.exit(1)


if __name__ == "__main__":
    main()

"""Each statement of a refresh with its seconds, Spark jobs and rows read: python -m benchmarks.profile --help.

The sources, changes and models are those of benchmarks.keys.  The first rounds warm the JVM up; the last is printed.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.equality import checksum
from benchmarks.keys import data
from benchmarks.keys.project import KeysProject, model_name, with_tables
from benchmarks.keys.sources import CHANGES, Sources
from benchmarks.keys.strategies import STRATEGIES
from benchmarks.keys.views import PLAIN, SHAPES, VIEWS
from benchmarks.markdown import table
from benchmarks.session import spark_session
from benchmarks.stages import Stages

SHOWN = 90


@dataclass(frozen=True)
class Statement:
    text: str
    seconds: float
    rows_read: int
    jobs: int


@contextmanager
def recorded(stages: Stages, found: list[Statement]) -> Iterator[None]:
    """Every statement that goes through the package's engine meanwhile; dbt's own do not."""
    from dbt_ivm.bridge.engine import Engine

    original = Engine.rows

    def rows(self: Any, sql: str) -> list[dict[str, Any]]:
        stages.take()
        jobs, start = stages.jobs, time.perf_counter()
        try:
            return original(self, sql)
        finally:
            seconds = time.perf_counter() - start
            found.append(Statement(sql, seconds, stages.take().rows_read, stages.jobs - jobs))

    Engine.rows = rows  # type: ignore[method-assign]
    try:
        yield
    finally:
        Engine.rows = original  # type: ignore[method-assign]


def summary(sql: str) -> str:
    """The first words of a statement.

    >>> summary("CACHE TABLE x OPTIONS ('storageLevel' = 'MEMORY_AND_DISK') AS\\nSELECT  1")
    'CACHE TABLE x AS SELECT 1'
    """
    text = re.sub(r"\s+", " ", re.sub(r" (OPTIONS|WITH) \((?:[^()']|'(?:[^'\\]|\\.)*')*\)", "", sql))
    return text[:SHOWN]


def report(title: str, statements: list[Statement], whole: float) -> str:
    rows = [
        [summary(s.text).replace("|", "\\|"), f"{s.seconds:.2f}", str(s.jobs), f"{s.rows_read:,}"] for s in statements
    ]
    seconds = sum(s.seconds for s in statements)
    rows.append(["all statements", f"{seconds:.2f}", str(sum(s.jobs for s in statements)), ""])
    rows[-1][-1] = f"{sum(s.rows_read for s in statements):,}"
    rows.append(["planning and dbt", f"{whole - seconds:.2f}", "", ""])
    return f"## {title}: {whole:.2f} s, {len(statements)} statements\n\n" + table(
        ["statement", "seconds", "jobs", "rows read"], rows
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("--views", nargs="+", default=["ss_3dim", "snwf"], choices=tuple(VIEWS))
    parser.add_argument("--shape", default=PLAIN, choices=SHAPES)
    ours = tuple(name for name, strategy in STRATEGIES.items() if strategy.is_ours)
    parser.add_argument("--strategies", nargs="+", default=["trust", "verify"], choices=ours)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--share", type=int, default=2000)
    parser.add_argument("--change", choices=CHANGES, default="policy")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=data.DEFAULT_FOLDER)
    parser.add_argument("--texts", type=Path, help="folder for the statements of the last round")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    generated = data.Data(given.scale, given.data)
    if not generated.is_there:
        generated.make()
    with tempfile.TemporaryDirectory(prefix="ivm_profile_", ignore_cleanup_errors=True) as folder:
        spark = spark_session(Path(folder) / "warehouse")
        for name in given.views:
            profile(given, name, generated, Path(folder), spark, Stages(spark))
        spark.stop()


def profile(
    given: argparse.Namespace, name: str, generated: data.Data, folder: Path, spark: Any, stages: Stages
) -> None:
    view, schema = VIEWS[name], f"profile_{name}"
    sources = Sources(spark, folder / schema, schema, view, generated)
    models = [(given.shape, strategy) for strategy in given.strategies]
    project = KeysProject(folder / f"{schema}_project", schema, view, models)
    try:
        sources.load(given.change, given.share, given.rounds)
        for model in models:
            project.run(model_name(view, *model))
        query = f"({with_tables(view.query(given.shape), view, schema + '.{0}')})"
        for number in range(given.rounds):
            sources.change(given.change, number)
            for model in models[number % len(models) :] + models[: number % len(models)]:
                found: list[Statement] = []
                with recorded(stages, found):
                    result = project.run(model_name(view, *model))
                whole = float(result["execution_time"])
                ivm = result["adapter_response"]["ivm"]
                title = f"{model_name(view, *model)}, {ivm['way'] or ivm['strategy']}"
                if number < given.rounds - 1:
                    read = sum(s.rows_read for s in found)
                    print(f"round {number}: {title} {whole:.2f} s, {len(found)} statements, {read:,} rows", flush=True)
                    continue
                print(report(title, found, whole), flush=True)
                keep_texts(given.texts, model_name(view, *model), found)
        columns = list(view.outputs(given.shape))
        expected = checksum(sources.sql, columns, query)
        for model in models:
            if checksum(sources.sql, columns, project.relation(*model)) != expected:
                raise SystemExit(f"{model_name(view, *model)} differs from its query")
    finally:
        sources.drop()


def keep_texts(folder: Path | None, model: str, statements: list[Statement]) -> None:
    if folder is None:
        return
    (folder / model).mkdir(parents=True, exist_ok=True)
    for position, statement in enumerate(statements, 1):
        (folder / model / f"{position:02}.sql").write_text(statement.text + "\n")


if __name__ == "__main__":
    main()

"""The demo from start to end: build, change, refresh, nothing to do, test, explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from examples.shop.demo import place
from examples.shop.demo.changes import a_day_of_changes, apply_change, apply_changes, one_more_change
from examples.shop.demo.data import Sizes, create_sources
from examples.shop.demo.dbt_command import DbtFailed, ModelRun, dbt_explain, dbt_run, dbt_test
from examples.shop.demo.quiet import quiet_output
from examples.shop.demo.report import Report
from examples.shop.demo.session import SparkDidNotStart, start_spark, table_version

FULL_REFRESH = "dbt run --full-refresh"
EXPLAINED = "revenue_by_segment"
EXPLAINED_LINES = 60
DETAILED = "order_lines"


class NotAsPromised(Exception):
    """The demo shows something else than it says."""


def main() -> int:
    try:
        sizes = Sizes(place.rows_asked_for())
    except place.BadSize as error:
        print(error)
        return 1
    place.start_afresh()
    with quiet_output(place.LOG) as terminal:
        report = Report(terminal)
        try:
            tell(report, sizes)
        except (SparkDidNotStart, DbtFailed, NotAsPromised) as error:
            report.problem(str(error), "What Spark and dbt said: examples/shop/.run/spark.log and .run/logs/dbt.log")
            return 1
        except KeyboardInterrupt:
            return 130
    return 0


def tell(report: Report, sizes: Sizes) -> None:
    report.title(
        f"dbt-ivm: a shop with {sizes.lines:,} order lines on embedded Spark and Delta",
        f"another size: {place.ROWS_VARIABLE}=1000000 make demo;  tables and logs: examples/shop/.run",
    )
    spark = prepare(report, sizes)
    full = build(report)
    change(report, spark, sizes)
    refresh(report, full)
    refresh_without_changes(report, spark, full)
    compare(report)
    explain(report, spark)
    report.success(f"All as promised, in {report.seconds:.0f} seconds.")


def prepare(report: Report, sizes: Sizes) -> Any:
    with report.step("0  Start Spark, make the source tables") as progress:
        progress("starting Spark (the first time it downloads the Delta jars)")
        spark = start_spark()
        progress("making tables")
        for name, rows in create_sources(spark, sizes):
            report.line(f"{rows:>9,}  {name}")
    return spark


def build(report: Report) -> dict[str, ModelRun]:
    with report.step("1  Build every model", "dbt run") as progress:
        report.builds(expect("create", dbt_run(progress=progress)))
    with report.step("   Once more with Spark warmed up, for times to compare with", FULL_REFRESH) as progress:
        runs = expect("full", dbt_run("--full-refresh", progress=progress))
        report.line(f"{len(runs)} models rebuilt in full")
    return {run.name: run for run in runs}


def change(report: Report, spark: Any, sizes: Sizes) -> None:
    with report.step("2  A day in the shop: five tables change") as progress:
        progress("changing")
        for done, touched in apply_changes(spark, a_day_of_changes(sizes)):
            report.line(f"{touched:>9,}  {done.what}")


def refresh(report: Report, full: Mapping[str, ModelRun]) -> None:
    with report.step("3  Refresh every model by what changed", "dbt run") as progress:
        runs = expect("incremental", dbt_run(progress=progress))
        report.refreshes(runs, full)
        report.foreign_keys(next(run for run in runs if run.name == DETAILED))


def refresh_without_changes(report: Report, spark: Any, models: Mapping[str, ModelRun]) -> None:
    with report.step("4  Refresh when nothing changed", "dbt run") as progress:
        before = storage_versions(spark, models)
        runs = expect("none", dbt_run(progress=progress))
        report.builds(runs)
        after = storage_versions(spark, models)
        if before != after:
            raise NotAsPromised(f"A storage table got a new version: before {before}, after {after}")
        report.line(f"nothing was written: all {len(after)} storage tables are at the version they had")


def compare(report: Report) -> None:
    with report.step("5  Compare every model with its query, row by row", "dbt test") as progress:
        runs = dbt_test(progress=progress)
        report.tests(runs)
    if not runs or not all(run.passed for run in runs):
        raise NotAsPromised("A model differs from its query.")


def explain(report: Report, spark: Any) -> None:
    command = f"dbt run-operation ivm_explain --args '{{model: {EXPLAINED}}}'"
    with report.step("6  One more change: what would the next refresh do?", command) as progress:
        progress("planning")
        apply_change(spark, one_more_change())
        report.text(dbt_explain(EXPLAINED), most_lines=EXPLAINED_LINES)


def expect(strategy: str, runs: Sequence[ModelRun]) -> Sequence[ModelRun]:
    """A demo of incremental refreshes must not pass because everything was rebuilt."""
    others = [f"{run.name}: {run.message}" for run in runs if run.strategy != strategy]
    if others or not runs:
        raise NotAsPromised(f"The strategy of every model should have been '{strategy}':\n" + "\n".join(others))
    return runs


def storage_versions(spark: Any, models: Mapping[str, ModelRun]) -> dict[str, int]:
    return {name: table_version(spark, f"shop.{name}__ivm") for name in models}

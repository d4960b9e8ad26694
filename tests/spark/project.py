"""A dbt project in a temporary folder, run by the real dbt in this process."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from tests.spark.session import spark_session

NUMBERS = itertools.count(1)


class RunFailed(AssertionError):
    pass


class Project:
    """Writes files, runs dbt, reads what came out.  Every project has a schema of its own."""

    def __init__(self, folder: Path, schema: str | None = None) -> None:
        self.folder = folder
        self.schema = schema or f"shop_{next(NUMBERS)}"
        self.spark = spark_session()
        self.sql(f"create database if not exists {self.schema}")
        self.write(
            "dbt_project.yml",
            {
                "name": "shop",
                "version": "1.0.0",
                "config-version": 2,
                "profile": "shop",
                "flags": {"send_anonymous_usage_stats": False},
            },
        )
        output = {"type": "spark", "method": "session", "host": "NA", "schema": self.schema, "threads": 1}
        self.write("profiles.yml", {"shop": {"target": "dev", "outputs": {"dev": output}}})
        self.sources: dict[str, dict[str, Any]] = {}

    # ---------------------------------------------------------------- files
    def write(self, path: str, content: str | dict[str, Any]) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))

    def model(self, name: str, sql: str, materialized: str = "incremental_ivm", **config: Any) -> None:
        options = "".join(f", {k}={v!r}" for k, v in config.items())
        self.write(f"models/{name}.sql", f"{{{{ config(materialized='{materialized}'{options}) }}}}\n{sql}")

    def source(self, name: str, definition: str = "", rows: str = "", feed: bool = True, **properties: Any) -> None:
        """A Delta table registered as source('raw', name)."""
        if definition:
            on = "tblproperties (delta.enableChangeDataFeed = true)" if feed else ""
            self.sql(f"create table {self.schema}.{name} ({definition}) using delta {on}")
        if rows:
            self.sql(f"insert into {self.schema}.{name} values {rows}")
        self.sources[name] = {"name": name, **properties}
        document = {
            "version": 2,
            "sources": [{"name": "raw", "schema": self.schema, "tables": list(self.sources.values())}],
        }
        self.write("models/sources.yml", document)

    # ---------------------------------------------------------------- dbt
    def dbt(self, *arguments: str, expect_success: bool = True) -> dict[str, dict[str, Any]]:
        """Run dbt; returns run_results by node name, with the ``ivm`` part lifted."""
        from dbt.cli.main import dbtRunner

        command = [*arguments, "--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        results_file = self.folder / "target" / "run_results.json"
        results_file.unlink(missing_ok=True)
        outcome = dbtRunner().invoke(command)
        results: dict[str, dict[str, Any]] = {}
        if results_file.exists():
            for result in json.loads(results_file.read_text())["results"]:
                parts = result["unique_id"].split(".")
                results[parts[3] if parts[0] == "unit_test" else parts[2]] = {
                    **result,
                    **(result["adapter_response"].get("ivm") or {}),
                }
        if outcome.success != expect_success:
            messages = [f"{n}: {r['status']} {r['message']}" for n, r in results.items()]
            raise RunFailed(
                f"dbt {' '.join(arguments)}: success={outcome.success}\n"
                + "\n".join(messages)
                + f"\n{outcome.exception}"
            )
        return results

    def run(self, *arguments: str, expect_success: bool = True) -> dict[str, dict[str, Any]]:
        return self.dbt("run", *arguments, expect_success=expect_success)

    # ---------------------------------------------------------------- data
    def sql(self, statement: str) -> list[Any]:
        rows: list[Any] = self.spark.sql(statement).collect()
        return rows

    def rows(self, relation: str) -> list[tuple[Any, ...]]:
        found = [tuple(r) for r in self.sql(f"select * from {self.schema}.{relation}")]
        return sorted(found, key=lambda r: tuple((v is not None, str(v)) for v in r))

    def compiled(self, name: str) -> str:
        return (self.folder / "target" / "compiled" / "shop" / "models" / f"{name}.sql").read_text()

    def assert_equal(self, name: str) -> None:
        """The oracle: the model equals its query as a bag, both ways.

        Rows are compared here, by what they look like: Spark cannot plan EXCEPT ALL of every query that it can run.
        """
        expected = Counter(repr(tuple(row)) for row in self.sql(self.compiled(name)))
        found = Counter(repr(tuple(row)) for row in self.sql(f"select * from {self.schema}.{name}"))
        missing, extra = expected - found, found - expected
        assert not missing and not extra, f"{name}: missing {list(missing)[:5]}, extra {list(extra)[:5]}"

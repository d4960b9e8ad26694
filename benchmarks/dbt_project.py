"""A dbt project written and run by a benchmark, in this process: one JVM for all of its models."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml


class DbtFailed(RuntimeError):
    pass


class DbtProject:
    def __init__(self, folder: Path, schema: str, sources: list[dict[str, Any]]) -> None:
        """Writes the project's own files; ``sources`` become the tables of source('raw', …) in the same schema."""
        self.folder = folder
        self.schema = schema
        output = {"type": "spark", "method": "session", "host": "NA", "schema": schema, "threads": 1}
        flags = {"send_anonymous_usage_stats": False}
        raw = {"name": "raw", "schema": schema, "tables": sources}
        files: dict[str, Any] = {
            "dbt_project.yml": {"name": "bench", "version": "1.0.0", "profile": "bench", "flags": flags},
            "profiles.yml": {"bench": {"target": "dev", "outputs": {"dev": output}}},
            "models/sources.yml": {"version": 2, "sources": [raw]},
        }
        self.write({name: yaml.safe_dump(content, sort_keys=False) for name, content in files.items()})

    def write(self, files: Mapping[str, str]) -> None:
        for name, content in files.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)

    def run(self, model: str) -> dict[str, Any]:
        """One model refreshed; its entry in run_results."""
        self._dbt("run", "--select", model)
        (result,) = json.loads((self.folder / "target/run_results.json").read_text())["results"]
        found: dict[str, Any] = result
        return found

    def operation(self, name: str, arguments: str, on_message: Callable[[str], None] | None = None) -> float:
        """Seconds of ``dbt run-operation`` inside dbt.

        Args:
            on_message: gets what the macro logs.
        """

        def on_event(event: Any) -> None:
            if on_message is not None and event.info.name.startswith("JinjaLog"):
                on_message(event.data.msg)

        outcome = self._dbt("run-operation", name, "--args", arguments, callbacks=[on_event])
        return float(outcome.result.results[0].execution_time)

    def _dbt(self, *arguments: str, callbacks: list[Callable[[Any], None]] | None = None) -> Any:
        from dbt.cli.main import dbtRunner

        places = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        places += ["--log-path", str(self.folder / "logs"), "--target-path", str(self.folder / "target")]
        outcome = dbtRunner(callbacks=callbacks).invoke([*arguments, *places, "--quiet", "--log-level-file", "none"])
        if not outcome.success:
            raise DbtFailed(f"dbt {' '.join(arguments)}: {outcome.exception or self._first_error()}")
        return outcome

    def _first_error(self) -> str:
        file = self.folder / "target/run_results.json"
        results = json.loads(file.read_text())["results"] if file.exists() else []
        messages = [r["message"] for r in results if r["status"] == "error"]
        return messages[0] if messages else "see the message above"

"""One dbt project per view: the same query as six models over the same sources, one model per way."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import yaml

from benchmarks.apply.tables import Tables

CONFIGS = {
    "rebuild": "materialized='table', file_format='delta'",
    "by_hand": "materialized='incremental', incremental_strategy='merge', file_format='delta', unique_key='{key}'",
    "rewrite": "materialized='incremental_ivm', meta={{'ivm': {{'refresh': 'full'}}}}",
    "merge": "materialized='incremental_ivm', meta={{'ivm': {{'apply': 'merge'}}}}",
    "log": "materialized='incremental_ivm', meta={{'ivm': {{'apply': 'log'}}}}",
    "auto": "materialized='incremental_ivm'",
}
IVM_WAYS = ("rewrite", "merge", "log", "auto")

JOIN = """select {fact}, d.category, d.brand
from {{{{ source('raw', 'fact') }}}} f join {{{{ source('raw', 'dim') }}}} d on f.item = d.id
"""
JOIN_BY_HAND = """{% if is_incremental() %}
where f.version_number > (select max(version_number) from {{ this }})
{% endif %}
"""
AGGREGATE = """select f.id div 2 as pair, sum(f.amount) as amount, count(*) as n, max(f.day) as day{more}
from {{{{ source('raw', 'fact') }}}} f
"""
AGGREGATE_BY_HAND = """{% if is_incremental() %}
where f.id div 2 in (
  select id div 2 from {{ source('raw', 'fact') }}
  where version_number > (select max(version_number) from {{ this }})
)
{% endif %}
"""


class DbtFailed(RuntimeError):
    pass


class Project:
    def __init__(self, folder: Path, tables: Tables, view: str, ways: tuple[str, ...]) -> None:
        self.folder = folder
        self.tables = tables
        self.view = view
        self.ways = ways
        self.key = "id" if view == "join" else "pair"
        self._write()

    @property
    def columns(self) -> list[str]:
        """Columns that every model has."""
        if self.view == "join":
            return [*self.tables.columns, "category", "brand"]
        return ["pair", "amount", "n", "day"]

    def relation(self, way: str) -> str:
        return f"{self.tables.schema}.{way}"

    def storage(self, way: str) -> str:
        return self.relation(f"{way}__ivm" if way in IVM_WAYS else way)

    def query(self) -> str:
        """The view's query as Spark runs it, to compare with when no table was rebuilt."""
        text = self._body("rebuild")
        for name in ("fact", "dim"):
            text = text.replace("{{ source('raw', '" + name + "') }}", f"{self.tables.schema}.{name}")
        return text

    def _body(self, way: str) -> str:
        """The way people write it by hand: a watermark column; the aggregate recomputes groups that have newer rows."""
        by_hand = way == "by_hand"
        if self.view == "join":
            fact = ", ".join(f"f.{column}" for column in self.tables.columns)
            return JOIN.format(fact=fact) + (JOIN_BY_HAND if by_hand else "")
        more = ", max(f.version_number) as version_number" if by_hand else ""
        return AGGREGATE.format(more=more) + (AGGREGATE_BY_HAND if by_hand else "") + "group by f.id div 2\n"

    def _write(self) -> None:
        output = {"type": "spark", "method": "session", "host": "NA", "schema": self.tables.schema, "threads": 1}
        key = [{"name": "id", "constraints": [{"type": "primary_key"}]}]
        sources = [{"name": "fact", "columns": key}, {"name": "dim", "columns": key}]
        flags = {"send_anonymous_usage_stats": False}
        files: dict[str, Any] = {
            "dbt_project.yml": {"name": "bench", "version": "1.0.0", "profile": "bench", "flags": flags},
            "profiles.yml": {"bench": {"target": "dev", "outputs": {"dev": output}}},
            "models/sources.yml": {
                "version": 2,
                "sources": [{"name": "raw", "schema": self.tables.schema, "tables": sources}],
            },
        }
        for name, content in files.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(yaml.safe_dump(content, sort_keys=False))
        for way in self.ways:
            config = CONFIGS[way].format(key=self.key)
            (self.folder / f"models/{way}.sql").write_text(f"{{{{ config({config}) }}}}\n{self._body(way)}")

    def run(self, way: str) -> dict[str, Any]:
        """One model refreshed; its entry in run_results."""
        self._dbt("run", "--select", way)
        (result,) = json.loads((self.folder / "target/run_results.json").read_text())["results"]
        found: dict[str, Any] = result
        return found

    def compact(self, way: str) -> float:
        """Seconds of ``ivm_compact`` inside dbt."""
        outcome = self._dbt("run-operation", "ivm_compact", "--args", f"{{model: {way}}}")
        return float(outcome.result.results[0].execution_time)

    def _dbt(self, *arguments: str) -> Any:
        from dbt.cli.main import dbtRunner

        places = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        places += ["--log-path", str(self.folder / "logs"), "--target-path", str(self.folder / "target")]
        outcome = dbtRunner().invoke([*arguments, *places, "--quiet", "--log-level-file", "none"])
        if not outcome.success:
            raise DbtFailed(f"dbt {' '.join(arguments)}: {outcome.exception or 'see the message above'}")
        return outcome

    def remove(self) -> None:
        try:
            self.tables.drop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

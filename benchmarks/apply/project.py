"""One dbt project per view: the same query as six models over the same sources, one model per way."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.apply.tables import Tables
from benchmarks.dbt_project import DbtProject

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


class Project(DbtProject):
    def __init__(self, folder: Path, tables: Tables, view: str, ways: tuple[str, ...]) -> None:
        key = [{"name": "id", "constraints": [{"type": "primary_key"}]}]
        super().__init__(folder, tables.schema, [{"name": "fact", "columns": key}, {"name": "dim", "columns": key}])
        self.tables = tables
        self.view = view
        self.ways = ways
        self.key = "id" if view == "join" else "pair"
        self.write({f"models/{way}.sql": self._model(way) for way in ways})

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

    def reference(self, is_rebuilt: bool) -> str:
        """What views are compared with: the rebuilt table when it is fresh, else the query itself."""
        return self.relation("rebuild") if is_rebuilt else f"({self.query()})"

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

    def _model(self, way: str) -> str:
        return f"{{{{ config({CONFIGS[way].format(key=self.key)}) }}}}\n{self._body(way)}"

    def compact(self, way: str) -> float:
        """Seconds of ``ivm_compact`` inside dbt."""
        return self.operation("ivm_compact", f"{{model: {way}}}")

    def remove(self) -> None:
        try:
            self.tables.drop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

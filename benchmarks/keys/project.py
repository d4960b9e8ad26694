"""The dbt project of one view: its sources with their keys, and one model per shape and strategy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.dbt_project import DbtProject
from benchmarks.keys import by_hand
from benchmarks.keys.schema import TABLES
from benchmarks.keys.strategies import BY_HAND, BY_HAND_RIGHT, STRATEGIES, TABLE
from benchmarks.keys.views import GROUPED, PLAIN, View

MARK = "BENCH_DELTA "
#: hands the text of the delta to this process, by a log message
DELTA_MACRO = f"""
{{% macro bench_delta(model) %}}
  {{%- set planned = dbt_ivm.ivm_planned('dry_run', model) -%}}
  {{%- do log('{MARK}' ~ tojson({{'strategy': planned.strategy, 'sql': planned.sql}})) -%}}
{{% endmacro %}}
"""


def model_name(view: View, shape: str, strategy: str) -> str:
    return f"{view.name}_{strategy}" if shape == PLAIN else f"{view.name}_{GROUPED}_{strategy}"


class KeysProject(DbtProject):
    def __init__(self, folder: Path, schema: str, view: View, models: list[tuple[str, str]]) -> None:
        super().__init__(folder, schema, source_tables(view))
        self.view = view
        files = {f"models/{model_name(view, *pair)}.sql": model_text(view, *pair) for pair in models}
        self.write(files | {"macros/by_hand.sql": by_hand.MACROS, "macros/delta.sql": DELTA_MACRO})

    def relation(self, shape: str, strategy: str) -> str:
        return f"{self.schema}.{model_name(self.view, shape, strategy)}"

    def delta_text(self, shape: str, strategy: str) -> str | None:
        """The SELECT of the rows that the next refresh would apply; None when it would not be incremental."""
        found: list[dict[str, Any]] = []

        def on_message(text: str) -> None:
            if text.startswith(MARK):
                found.append(json.loads(text.removeprefix(MARK)))

        self.operation("bench_delta", f"{{model: {model_name(self.view, shape, strategy)}}}", on_message)
        text: str | None = found[-1]["sql"]
        return text


def source_tables(view: View) -> list[dict[str, Any]]:
    """Keys of one column as constraints of that column, others under meta: dbt keeps no others of a source."""
    found = []
    for name in view.tables:
        columns: dict[str, list[dict[str, Any]]] = {}
        meta: dict[str, Any] = {}
        key = TABLES[name].primary_key
        if len(key) == 1:
            columns.setdefault(key[0], []).append({"type": "primary_key"})
        else:
            meta["primary_key"] = list(key)
        for foreign_key in view.foreign_keys(name):
            to = {"to": f"source('raw', '{foreign_key.to}')", "to_columns": list(TABLES[foreign_key.to].primary_key)}
            if len(foreign_key.columns) == 1:
                columns.setdefault(foreign_key.columns[0], []).append({"type": "foreign_key", **to})
            else:
                meta.setdefault("foreign_keys", []).append({"columns": list(foreign_key.columns), **to})
        for column in TABLES[name].not_null:
            columns.setdefault(column, []).append({"type": "not_null"})
        table: dict[str, Any] = {"name": name}
        if columns:
            table["columns"] = [{"name": column, "constraints": c} for column, c in columns.items()]
        if meta:
            table["config"] = {"meta": {"ivm": meta}}
        found.append(table)
    return found


def model_text(view: View, shape: str, strategy: str) -> str:
    if strategy == BY_HAND:
        text = by_hand.usual(view, shape)
    elif strategy == BY_HAND_RIGHT:
        plain = model_name(view, PLAIN, BY_HAND_RIGHT)
        text = by_hand.right(view) if shape == PLAIN else by_hand.right_grouped(view, plain)
    else:
        text = f"{{{{ config({_config(strategy)}) }}}}\n{view.query(shape)}"
    return with_tables(text, view, "{{{{ source('raw', '{0}') }}}}")


def _config(strategy: str) -> str:
    if strategy == TABLE:
        return "materialized='table', file_format='delta'"
    return f"materialized='incremental_ivm', meta={{'ivm': {STRATEGIES[strategy].options!r}}}"


def with_tables(text: str, view: View, pattern: str) -> str:
    """Fills the placeholders of tables.

    >>> from benchmarks.keys.views import VIEWS
    >>> with_tables("from {item} item", VIEWS["ss_2dim"], "raw.{0}")
    'from raw.item item'
    """
    for name in view.tables:
        text = re.sub(rf"(?<!{{){{{name}}}(?!}})", pattern.format(name), text)
    return text

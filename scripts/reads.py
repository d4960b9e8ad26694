"""How often the statements of a refresh name each source: the models of benchmarks/reads.py, planned."""

from __future__ import annotations

import re

from benchmarks.reads import DIM, FACT, MODELS, WITHOUT
from dbt_ivm import plan_view, table

TABLES = (
    table(
        "raw.fact",
        {"id": "bigint", "dim_id": "bigint", "other_id": "bigint", "amount": "decimal(10,2)"},
        primary_key=["id"],
    ),
    table("raw.dim", {"id": "bigint", "name": "string"}, primary_key=["id"]),
)


def reads_of() -> list[tuple[str, str, str, str]]:
    """(view, table that changed, mentions of the snapshot of each table, mentions of change feeds)."""
    found = []
    for title, model in MODELS.items():
        sql = model.replace(FACT, "raw.fact").replace(DIM, "raw.dim")
        for changed in ("fact", "dim"):
            if f"raw.{changed}" not in sql:
                continue
            options = {"rules_off": ["net_supplements"]} if title.endswith(WITHOUT) else {}
            window = {f"raw.{changed}": (1, 2)}
            plan = plan_view(sql, TABLES, model="marts.view", changes=window, options=options)
            text = "\n".join(step.sql for step in plan.steps)
            counts = {n: len(re.findall(rf"raw\.{n} VERSION AS OF", text)) for n in ("fact", "dim")}
            snapshots = ", ".join(f"{n} {count}" for n, count in counts.items() if count) or "–"
            found.append((title, changed, snapshots, str(text.count("TABLE_CHANGES("))))
    return found

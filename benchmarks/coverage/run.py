"""Query by query: plan, check, store, tell."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.coverage.check import EQUAL, ERROR, Check, Checked
from benchmarks.coverage.data import Data, Query, TableData
from benchmarks.coverage.history import History
from benchmarks.coverage.limits import failure, within
from benchmarks.coverage.on_duckdb import SCHEMA, DuckEngine
from benchmarks.coverage.planned import Planned, declare, plan_model
from benchmarks.coverage.rewrite import Model, model_of
from benchmarks.coverage.steering import settled_columns, wanted_values
from benchmarks.results import Record, Results
from dbt_ivm.catalog.tables import Table
from dbt_ivm.refresh.decide import INCREMENTAL
from tests.property.duck import Duck

MEMORY = "6GB"
SPILL = Path(tempfile.gettempdir()) / "ivm_coverage_spill"
#: Longer explanations are for the console.
SUMMARY = 60


@dataclass(frozen=True)
class Settings:
    rounds: int = 3
    seed: int = 0
    limit: float = 60.0
    foreign_keys: bool = False
    apply: str = "auto"


@dataclass(frozen=True)
class Prepared:
    """A query as a model over declared tables, and what the planner says about it."""

    query: Query
    model: Model
    data: dict[str, TableData]
    tables: list[Table]
    planned: Planned


def prepare(query: Query, tables: dict[str, TableData], schema: str, settings: Settings) -> Prepared:
    model = model_of(query.text, tables, schema)
    used = {name: tables[name] for name in model.tables}
    declared = declare(used.values(), schema, settings.foreign_keys)
    return Prepared(query, model, used, declared, plan_model(model.sql, declared))


def check_on_duckdb(prepared: Prepared, settings: Settings) -> Checked:
    """A result that no change reached says little: then the model goes through a dense history too."""
    found = within(settings.limit, lambda: _check_history(prepared, settings, dense=False))
    if found.verdict != EQUAL or found.moved:
        return found
    return within(settings.limit, lambda: _check_history(prepared, settings, dense=True))


def _check_history(prepared: Prepared, settings: Settings, dense: bool) -> Checked:
    model, duck = prepared.model, Duck()
    duck.connection.execute(f"SET memory_limit = '{MEMORY}'; SET temp_directory = '{SPILL}'")
    wanted = wanted_values([model.original], {c for t in prepared.data.values() for c in t.columns})
    settled = settled_columns(model.original)
    history = History(duck.connection, prepared.data, settings.seed, wanted, settled, dense)
    engine, options = DuckEngine(duck, history, model), {"apply": settings.apply}
    return Check(model.sql, prepared.tables, f"{SCHEMA}.model", engine, options).run(settings.rounds)


def run_all(
    queries: list[Query],
    data: Data,
    settings: Settings,
    check: Callable[[Prepared, Settings], Checked] | None,
    results: Results | None,
    engine: str,
    schema: str = SCHEMA,
) -> list[tuple[str, Planned, Checked]]:
    """``check`` is None: plans only."""
    tables = {b.name: data.tables(b) for b in {q.benchmark.name: q.benchmark for q in queries}.values()}
    found = []
    for number, query in enumerate(queries, 1):
        started = time.perf_counter()
        planned, checked = Planned("error"), Checked()
        try:
            prepared = prepare(query, tables[query.benchmark.name], schema.format(query.benchmark.name), settings)
            planned = prepared.planned
            if check is not None and planned.strategy == INCREMENTAL:
                checked = check(prepared, settings)
        except Exception as error:
            checked = failure(error)
        checked = replace(checked, seconds=round(time.perf_counter() - started, 1))
        found.append((query.name, planned, checked))
        if results is not None:
            results.remove({(engine, query.name)})
            results.append([record(engine, query.name, planned, checked)])
        print(progress(f"{number}/{len(queries)}", query.name, planned, checked), flush=True)
    return found


def progress(position: str, name: str, planned: Planned, checked: Checked) -> str:
    result = f"rows {' → '.join(map(str, checked.rows))}, moved {checked.moved}" if checked.rows else ""
    said = [planned.strategy, planned.clause or planned.reason, str(checked), result, f"{checked.seconds:.1f} s"]
    return f"{position:>7} {name:5} " + " | ".join(s for s in said if s)


def record(engine: str, name: str, planned: Planned, checked: Checked) -> Record:
    """Without the clause of a refusal and the rows of a difference: neither queries nor data go into the repository."""
    return {
        "kind": "done",
        "step": [engine, name],
        "strategy": planned.strategy,
        "reason": planned.reason,
        "operators": [list(pair) for pair in planned.operators],
        "verdict": checked.verdict,
        "summary": summary(checked),
        "rows": list(checked.rows),
        "moved": checked.moved,
    }


def summary(checked: Checked) -> str:
    said = checked.detail.split(", ")[0] if checked.verdict != ERROR else checked.detail.split(":")[0]
    return said[:SUMMARY]

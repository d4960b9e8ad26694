"""One model, twice: its delta computed and thrown away, and the whole refresh."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.keys.project import KeysProject, model_name
from benchmarks.results import Record
from benchmarks.stages import Stages


def delta_only(project: KeysProject, spark: Any, stages: Stages, shape: str, strategy: str) -> Record:
    """Seconds and rows read of the delta's SELECT, before the refresh; without planning, checks and writing."""
    text = project.delta_text(shape, strategy)
    if text is None:
        return {"delta_seconds": None}
    stages.take()
    start = time.perf_counter()
    spark.sql(text).write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - start
    work = stages.take()
    return {"delta_seconds": seconds, "delta_rows_read": work.rows_read, "delta_cpu_seconds": work.cpu_seconds}


def refresh(project: KeysProject, stages: Stages, shape: str, strategy: str) -> Record:
    """``seconds`` is dbt's execution_time of the node; ``parts`` are the package's own parts of it."""
    stages.take()
    result = project.run(model_name(project.view, shape, strategy))
    work = stages.take()
    ivm = (result["adapter_response"] or {}).get("ivm") or {}
    return {
        "seconds": float(result["execution_time"]),
        "rows_read": work.rows_read,
        "cpu_seconds": work.cpu_seconds,
        "shuffle_bytes": work.shuffle_bytes,
        "took": ivm.get("strategy", ""),
        "reason": ivm.get("reason") or "",
        "way": ivm.get("way") or "",
        "statements": ivm.get("statements"),
        "parts": ivm.get("seconds") or {},
        "changed": ivm.get("rows") or {},
        "auxiliary": ivm.get("auxiliary") or [],
        "foreign_keys": [f"{e.get('edge')}: {e.get('status')}" for e in ivm.get("foreign_keys") or []],
    }

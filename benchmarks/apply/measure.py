"""One refresh of one model: seconds inside dbt, what it did, rows read and written."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.apply.project import IVM_WAYS, Project
from benchmarks.stages import Stages


@dataclass(frozen=True)
class Refresh:
    """``seconds`` is dbt's execution_time of the node; ``plan`` and ``apply`` are the package's own parts of it."""

    model: str
    seconds: float
    strategy: str
    reason: str
    way: str
    plan: float | None
    apply: float | None
    statements: int | None
    inserted: int | None
    updated: int | None
    deleted: int | None
    total_rows: int | None
    rows_read: int
    rows_written: int | None
    operation: str

    def as_record(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def dead_rows(self) -> int:
        return (self.updated or 0) + (self.deleted or 0)


def refresh(project: Project, way: str, stages: Stages) -> Refresh:
    stages.take()
    result = project.run(way)
    read = stages.take().rows_read
    commit = project.tables.sql(f"describe history {project.storage(way)} limit 1")[0].asDict()
    metrics = commit["operationMetrics"] or {}
    ivm = (result["adapter_response"] or {}).get("ivm") or {}
    rows, seconds = ivm.get("rows") or {}, ivm.get("seconds") or {}
    written = metrics.get("numOutputRows")
    return Refresh(
        model=way,
        seconds=float(result["execution_time"]),
        strategy=ivm.get("strategy", ""),
        reason=ivm.get("reason") or "",
        way=ivm.get("way") or ("" if way in IVM_WAYS else {"rebuild": "table", "by_hand": "by hand"}[way]),
        plan=seconds.get("plan"),
        apply=seconds.get("apply"),
        statements=ivm.get("statements"),
        inserted=rows.get("inserted"),
        updated=rows.get("updated"),
        deleted=rows.get("deleted"),
        total_rows=ivm.get("total_rows"),
        rows_read=read,
        rows_written=int(written) if written is not None else None,
        operation=str(commit["operation"]),
    )

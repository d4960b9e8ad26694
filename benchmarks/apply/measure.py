"""One refresh of one model: seconds inside dbt, what it did, rows read and written."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.apply.project import IVM_WAYS, Project


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


class RowsRead:
    """Input records of the stages since the last look, from Spark's status store (no UI needed).

    Input records are rows that came out of files: after skipping files and row groups, before filters.  Delta's own
    reads of its log are among them, some hundred rows per statement.
    """

    def __init__(self, spark: Any) -> None:
        self.context = spark.sparkContext._jsc.sc()
        self.gateway = spark.sparkContext._gateway
        self.last_stage = -1
        self.take()

    def take(self) -> int:
        self.context.listenerBus().waitUntilEmpty()
        empty = self.gateway.new_array(self.gateway.jvm.double, 0)
        stages = self.context.statusStore().stageList(None, False, False, empty, self.gateway.jvm.java.util.ArrayList())
        total, newest, iterator = 0, self.last_stage, stages.iterator()
        while iterator.hasNext():
            stage = iterator.next()
            if stage.stageId() <= self.last_stage:  # sorted: newest first
                break
            total += int(stage.inputRecords())
            newest = max(newest, int(stage.stageId()))
        self.last_stage = newest
        return total


def refresh(project: Project, way: str, rows_read: RowsRead) -> Refresh:
    rows_read.take()
    result = project.run(way)
    read = rows_read.take()
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

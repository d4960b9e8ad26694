"""What Spark did since the last look, from its status store (no UI needed)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Work:
    """Sums over stages.

    ``rows_read`` are input records: rows that came out of files, after skipping files and row groups, before filters.
    Delta's own reads of its log are among them, some hundred rows per statement.
    """

    rows_read: int = 0
    cpu_seconds: float = 0.0
    shuffle_bytes: int = 0


class Stages:
    def __init__(self, spark: Any) -> None:
        self.context = spark.sparkContext._jsc.sc()
        self.gateway = spark.sparkContext._gateway
        self.last_stage = -1
        self.take()

    @property
    def jobs(self) -> int:
        """Jobs started in this session so far."""
        return int(self.context.dagScheduler().numTotalJobs())

    def take(self) -> Work:
        """The work of the stages that are new since the last call."""
        self.context.listenerBus().waitUntilEmpty()
        empty = self.gateway.new_array(self.gateway.jvm.double, 0)
        stages = self.context.statusStore().stageList(None, False, False, empty, self.gateway.jvm.java.util.ArrayList())
        rows = nanoseconds = shuffled = 0
        newest, iterator = self.last_stage, stages.iterator()
        while iterator.hasNext():
            stage = iterator.next()
            if stage.stageId() <= self.last_stage:  # sorted: newest first
                break
            rows += int(stage.inputRecords())
            nanoseconds += int(stage.executorCpuTime())
            shuffled += int(stage.shuffleWriteBytes())
            newest = max(newest, int(stage.stageId()))
        self.last_stage = newest
        return Work(rows, nanoseconds / 1e9, shuffled)

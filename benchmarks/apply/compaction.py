"""Compaction taken out of the refreshes, so that both are timed apart; it is run by hand where the rule would.

The rule itself stays the package's own (``dbt_ivm.refresh.compact.is_due``).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from benchmarks.apply.measure import Refresh
from benchmarks.apply.project import Project
from dbt_ivm.bridge import refresher
from dbt_ivm.refresh import compact

IS_DUE = compact.is_due


def turn_off() -> None:
    """For this process: no refresh compacts by itself."""

    def never(*_: object, **__: object) -> bool:
        return False

    for module in (compact, refresher):
        if not hasattr(module, "is_due"):
            raise RuntimeError(f"{module.__name__} has no is_due any more: adapt benchmarks/apply/compaction.py")
        setattr(module, "is_due", never)  # noqa: B010 - a name of a module, patched on purpose


def refreshes_between(dead_rows: int, rows: int) -> int:
    """Refreshes with so many dead rows each until the rule compacts.

    >>> refreshes_between(800, 300_000), refreshes_between(0, 300_000)
    (19, 50)
    """
    count = 1
    while not IS_DUE(dead_rows * count, rows, count) and count < 10_000:
        count += 1
    return count


@dataclass
class Logs:
    """Length of the log of each model of a project."""

    project: Project
    dead: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    refreshes: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def note(self, refresh: Refresh) -> None:
        if refresh.strategy == "incremental" and refresh.operation == "WRITE":
            self.dead[refresh.model] += refresh.dead_rows
            self.refreshes[refresh.model] += 1

    def compact_due(self, rows: int) -> list[dict[str, Any]]:
        """Compacts where the rule would have; what it took."""
        due = [m for m in self.refreshes if IS_DUE(self.dead[m], rows, self.refreshes[m])]
        return [self.compact(model, rows) for model in due]

    def compact(self, model: str, rows: int) -> dict[str, Any]:
        record = {"model": model, "rows": rows, "tombstones": self.dead[model], "refreshes": self.refreshes[model]}
        seconds = self.project.compact(model)
        self.project.tables.vacuum(self.project.storage(model))
        del self.dead[model], self.refreshes[model]
        return {"kind": "compaction", "seconds": seconds, **record}

"""What a refresh did: the status line, run_results, and what the materialization still has to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_ivm.bridge.engine import Engine
from dbt_ivm.refresh.decide import CREATE, FULL, INCREMENTAL
from dbt_ivm.refresh.foreign_keys import EdgeStatus
from dbt_ivm.refresh.plan import SCHEMA_VERSION
from dbt_ivm.refresh.state import Pin, RowCounts


@dataclass(frozen=True)
class Outcome:
    strategy: str
    reason: str = ""
    way: str = ""
    why: str = ""
    rows: RowCounts = field(default_factory=RowCounts)
    total: int | None = None
    seq: int | None = None
    facade_sql: str | None = None
    pins: Mapping[str, Pin] = field(default_factory=dict)
    foreign_keys: tuple[EdgeStatus, ...] = ()
    auxiliary: Mapping[str, Outcome] = field(default_factory=dict)
    statements: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def of(strategy: str, reason: str, engine: Engine) -> Outcome:
        return Outcome(strategy, reason, statements=engine.statements, seconds=dict(engine.seconds))

    @property
    def status(self) -> str:
        """One line for the terminal.

        >>> Outcome("incremental", rows=RowCounts(120, 8, 3), total=2685605).status
        'INCREMENTAL +120 ~8 -3 of 2,685,605'
        """
        word = self.strategy.upper()
        if self.strategy == INCREMENTAL:
            inserted, updated, deleted = (_number(v) for v in self.rows.as_dict().values())
            of = f" of {self.total:,}" if self.total is not None else ""
            return f"{word} +{inserted} ~{updated} -{deleted}{of}"
        if self.strategy in (CREATE, FULL):
            size = f" {self.total:,} rows" if self.total is not None else ""
            return f"{word}{size}" + (f" because {self.reason}" if self.reason else "")
        return f"{word} {self.reason}".strip()

    @property
    def response(self) -> dict[str, Any]:
        """``adapter_response.ivm`` of run_results."""
        return {
            "strategy": self.strategy,
            "reason": self.reason,
            "way": self.way,
            "why": self.why,
            "seq": self.seq,
            "rows": self.rows.as_dict(),
            "total_rows": self.total,
            "sources": {name: _source(pin) for name, pin in sorted(self.pins.items())},
            "foreign_keys": [{"edge": e.edge, "status": e.status, "touched": e.touched} for e in self.foreign_keys],
            "auxiliary": [
                {
                    "name": name,
                    "strategy": o.strategy,
                    "reason": o.reason,
                    "rows": o.rows.as_dict(),
                    "statements": o.statements,
                }
                for name, o in self.auxiliary.items()
            ],
            "statements": self.statements,
            "seconds": {phase: round(value, 3) for phase, value in self.seconds.items()},
            "schema_version": SCHEMA_VERSION,
        }


def _source(pin: Pin) -> dict[str, Any]:
    counts = pin.change.counts if pin.change else RowCounts()
    return {"from": pin.before, "to": pin.current.version, **counts.as_dict()}


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"

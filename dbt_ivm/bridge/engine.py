"""Statements through dbt's adapter: rows as dictionaries, a count, and errors as one kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any


class EngineError(Exception):
    """A statement failed; the text is the engine's."""


class Engine:
    """One model's statements.  ``adapter`` is dbt's adapter, as macros have it."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter
        self.statements = 0
        self.seconds: dict[str, float] = {"plan": 0.0, "delta": 0.0, "apply": 0.0}
        self._inside = 0.0

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Run a statement and fetch its rows."""
        self.statements += 1
        try:
            _, table = self._adapter.execute(sql, auto_begin=False, fetch=True)
        except Exception as error:  # every connection method has its own classes
            raise EngineError(str(error)) from error
        return [dict(zip(table.column_names, row, strict=True)) for row in table.rows]

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Time spent in a phase, without phases inside it."""
        start, outer = perf_counter(), self._inside
        self._inside = 0.0
        try:
            yield
        finally:
            elapsed = perf_counter() - start
            self.seconds[phase] += elapsed - self._inside
            self._inside = outer + elapsed

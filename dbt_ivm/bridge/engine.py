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
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] += perf_counter() - start

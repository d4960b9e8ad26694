"""The view under the model's own name: is the one that exists the right one, and what should it say?"""

from __future__ import annotations

from collections.abc import Callable

from dbt_ivm.bridge.engine import Engine
from dbt_ivm.bridge.request import Request
from dbt_ivm.refresh.state import LOG_MODE
from dbt_ivm.refresh.view import CompiledView
from dbt_ivm.render.query import sql_text

MARK = "dbt-ivm "

#: Names and types of the query's columns.
Outputs = tuple[tuple[str, str], ...]


class Facade:
    def __init__(self, engine: Engine, request: Request) -> None:
        self.engine = engine
        self.request = request
        self.shows_live_rows = False

    def token(self, view: CompiledView, mode: str) -> str:
        """Stands in the facade's own text, and changes when it must be created anew."""
        return f"{MARK}{view.fingerprint}-{mode}{self.request.facade_token}"

    def is_right(self, view: CompiledView, mode: str) -> bool:
        """Whether the view that exists under the model's name is this facade.

        Its text tells.  The state row cannot: a run that died between its commit and the facade leaves an old view.
        """
        return self.request.facade_kind == "view" and self.token(view, mode) in self.request.facade_text

    def query(self, view: CompiledView, outputs: Outputs, mode: str) -> str:
        storage = self.request.storage.table()
        return sql_text(view.facade_select(storage, outputs, self.token(view, mode), live=mode == LOG_MODE))

    def show_live_rows(self, view: CompiledView, outputs: Callable[[], Outputs]) -> None:
        """It must know tombstones before there is one; a run that died may have left one that does not."""
        if self.request.facade_kind == "view" and not self.is_right(view, LOG_MODE) and not self.shows_live_rows:
            with self.engine.timed("apply"):
                self.engine.rows(f"ALTER VIEW {self.request.facade} AS\n{self.query(view, outputs(), LOG_MODE)}")
            self.shows_live_rows = True

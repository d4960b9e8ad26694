"""A storage table that is kept by log: was a commit ours, compaction, and the way into the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dbt_ivm.bridge.engine import Engine, EngineError
from dbt_ivm.bridge.failures import Remedy, classify
from dbt_ivm.bridge.metadata import MetadataReader, Stored
from dbt_ivm.bridge.request import Request
from dbt_ivm.refresh.apply.state_only import change_state
from dbt_ivm.refresh.compact import compact, compacted
from dbt_ivm.refresh.plan import RefreshPlan
from dbt_ivm.refresh.state import LOG_MODE, METADATA_MARK, RowCounts, State, UnreadableState
from dbt_ivm.refresh.view import CompiledView

FOREIGN_COMMIT = "somebody else wrote into the storage table while this run refreshed it"


class LogTable:
    def __init__(self, engine: Engine, reader: MetadataReader, request: Request, warn: Callable[[str], None]) -> None:
        self.engine = engine
        self.reader = reader
        self.request = request
        self.warn = warn

    def written(self, stored: Stored, plan: RefreshPlan) -> tuple[State, RowCounts] | None:
        """The state this run committed and its counts; None when Delta skipped the commit as already done.

        Usually the newest commit says it all.  If it is not ours, or another came in between, the state rows tell
        whether the table is sound: a second one of the same number raises UnreadableState.
        """
        assert plan.commit is not None
        commits = self.reader.commits(self.request.storage)
        own = next((c for c in commits if c.metadata == METADATA_MARK + plan.commit.to_json()), None)
        if own is None or own is not commits[0] or own.version != stored.version + 1:
            self.reader.state_rows(self.request.storage)
        if own is None:
            return None
        if any(stored.version < c.version < own.version and not c.keeps_storage for c in commits):
            raise UnreadableState(FOREIGN_COMMIT)
        return plan.commit, plan.commit.counts or own.counts

    def compact(self, view: CompiledView, state: State, rows: int | None, mode: str = LOG_MODE) -> bool:
        """Dead rows and tombstones removed in one commit; False when another writer came first."""
        storage = self.request.storage
        commits = self.reader.commits(storage)
        if len(self.reader.moving_since(storage, state, commits)) != 1:
            self.warn(f"{self.request.model}: {storage} is not compacted, somebody else wrote into it")
            return False
        version = commits[0].version
        left = compacted(state, version, rows, mode)
        try:
            self.engine.rows(compact(view.layout, storage, version, left))
        except EngineError as error:
            if classify(str(error)).remedy is not Remedy.RERUN:
                raise
            self.warn(f"{self.request.model}: compaction of {storage} gave way to another writer; it comes again")
            return False
        return True

    def enter(self, stored: Stored, state: State) -> None:
        """From now on refreshes append; the view must know tombstones by then."""
        left = replace(state, seq=state.seq + 1, storage_version=stored.version + 1, mode=LOG_MODE, rows=stored.rows)
        self.engine.rows(change_state(self.request.storage, state.seq, left))

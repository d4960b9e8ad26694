"""The auxiliary views of a model: refreshed before it in the same run, each by the same protocol as a model.

A commit of theirs that the model's does not follow leaves nothing to repair.  The state of the model names the version
of each auxiliary table that it reflects, so the next run reads the change from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dbt_ivm.bridge.engine import Engine
from dbt_ivm.bridge.metadata import MetadataReader
from dbt_ivm.bridge.outcome import Outcome
from dbt_ivm.bridge.request import Request
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.errors import UserError
from dbt_ivm.refresh.decide import NONE
from dbt_ivm.refresh.plan import RefreshPlan
from dbt_ivm.refresh.state import State
from dbt_ivm.refresh.view import Auxiliary, CompiledView

if TYPE_CHECKING:
    from dbt_ivm.bridge.auxiliary_refresher import AuxiliaryRefresher


class ViolatedKeys(Exception):
    """Rows of an auxiliary view are not told apart by its key; nothing was written to it."""

    def __init__(self, keys: tuple[str, ...], told: tuple[str, ...]) -> None:
        super().__init__("; ".join(told))
        self.keys = keys
        self.told = told


class AuxiliaryViews:
    def __init__(self, engine: Engine, request: Request, reader: MetadataReader, warn: Callable[[str], None]) -> None:
        self.engine = engine
        self.request = request
        self.reader = reader
        self.warn = warn
        #: What happened in this run, by what was refreshed.
        self.outcomes: dict[tuple[RelationName, str], Outcome] = {}
        self.planned: dict[RelationName, RefreshPlan] = {}
        self.states: dict[RelationName, State | None] = {}

    def look(self, view: CompiledView, refreshing: bool) -> None:
        """Bring them up to date, each once in a run, or only plan that; then the reader pins what they are then."""
        for part in view.auxiliary:
            if not refreshing:
                self._foresee(part)
            elif _known_as(part) not in self.outcomes:
                self.outcomes[_known_as(part)] = self._refresh(part)

    def _refresh(self, part: Auxiliary) -> Outcome:
        before = self.engine.statements
        refresher = self._refresher(part)
        outcome = refresher.run()
        if outcome.strategy != NONE:
            self._hold(part.name, outcome)
        return replace(outcome, statements=self.engine.statements - before)

    def _hold(self, name: RelationName, outcome: Outcome) -> None:
        """From here on this run reads the rows that this refresh left, of the same sources as the model's."""
        stored = self.reader.stored(name)
        wanted = {source: pin.current for source, pin in outcome.pins.items()}
        if stored.state is None or stored.state.sources != wanted:
            raise UserError("IVM_CONCURRENT", f"another run refreshed {name} at the same time. Run the model again.")

    def _foresee(self, part: Auxiliary) -> None:
        """The version it will have, for plans of what reads it."""
        refresher = self._refresher(part)
        prepared = refresher.prepare()
        decision = refresher.decide(prepared)
        self.planned[part.name] = refresher.plan(prepared, decision)
        self.states[part.name] = prepared.state
        if decision.strategy != NONE:
            self.reader.foreseen[part.name] = (prepared.stored.version if prepared.stored else -1) + 1

    def _refresher(self, part: Auxiliary) -> AuxiliaryRefresher:
        from dbt_ivm.bridge.auxiliary_refresher import AuxiliaryRefresher

        return AuxiliaryRefresher(self.engine, self._request(part), part.view, self.reader, self.warn)

    def _request(self, part: Auxiliary) -> Request:
        """As the model's, for another table; ``partition_by`` is about the model's own rows."""
        location = self.request.table.location
        table = replace(
            self.request.table,
            partition_by=(),
            location=f"{location.rpartition('/')[0]}/{part.name.name}" if location else "",
            comment="",
        )
        return replace(
            self.request,
            model=f"{self.request.model} ({part.name.name})",
            sql="",
            facade=part.name,
            storage=part.name,
            table=table,
            storage_exists=self.reader.exists(part.name),
            facade_kind="",
            facade_text="",
            kept=f"{self.request.kept}_aux{part.name.name.rpartition('_')[2]}",
        )

    # ------------------------------------------------------------------ what the model tells about them
    def outcomes_of(self, view: CompiledView) -> Mapping[RelationName, Outcome]:
        return {p.name: self.outcomes[_known_as(p)] for p in view.auxiliary if _known_as(p) in self.outcomes}

    def plans(self, view: CompiledView) -> tuple[RefreshPlan, ...]:
        return tuple(self.planned[p.name] for p in view.auxiliary)

    def are_behind(self, view: CompiledView) -> bool:
        """Whether a plan reads versions that they will only have after their own refreshes."""
        return any(p.name in self.reader.foreseen for p in view.auxiliary)

    def together(self, view: CompiledView, state: State) -> State | None:
        """The state of the model as if it read everything itself; None when a crash left them ahead of it."""
        sources, dangling, readers = dict(state.sources), dict(state.dangling), [state]
        for part in reversed(view.auxiliary):
            own = self.states[part.name]
            commits = self.reader.held.get(part.name)
            reflected = {r.sources[str(part.name)].version for r in readers if str(part.name) in r.sources}
            if own is None or not commits or reflected != {commits[0].version}:
                return None
            readers.append(own)
            sources |= own.sources
            dangling |= own.dangling
        return replace(state, sources=sources, dangling=dangling)

    def compact(self, view: CompiledView) -> dict[RelationName, str]:
        return {p.name: self._refresher(p).compact_now() for p in view.auxiliary}


def _known_as(part: Auxiliary) -> tuple[RelationName, str]:
    return part.name, part.view.fingerprint

"""One refresh of an auxiliary view: a model's, without query text and facade."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from dbt_ivm.bridge.auxiliary import ViolatedKeys
from dbt_ivm.bridge.engine import Engine
from dbt_ivm.bridge.facade import Outputs
from dbt_ivm.bridge.metadata import MetadataReader
from dbt_ivm.bridge.outcome import Outcome
from dbt_ivm.bridge.refresher import Prepared, Refresher
from dbt_ivm.bridge.request import Request
from dbt_ivm.bridge.verify_keys import violated_keys
from dbt_ivm.catalog.tables import Catalog
from dbt_ivm.refresh.decide import Decision
from dbt_ivm.refresh.foreign_keys import EdgeStatus
from dbt_ivm.refresh.view import CompiledView


class AuxiliaryRefresher(Refresher):
    def __init__(
        self,
        engine: Engine,
        request: Request,
        view: CompiledView,
        reader: MetadataReader,
        warn: Callable[[str], None],
    ) -> None:
        super().__init__(engine, request, warn, reader)
        self.view = view

    def prepare(self, refreshing: bool = False) -> Prepared:
        stored = self.reader.stored(self.request.storage) if self.request.storage_exists else None
        recorded = stored.state.sources if stored and stored.state else {}
        pins = {t.name: self.reader.pin(t, recorded.get(str(t.name))) for t in self.view.tables}
        return Prepared(Catalog.of(self.view.tables), stored, self.view, pins)

    def _check_keys(self, prepared: Prepared, decision: Decision) -> Decision:
        broken = violated_keys(self.engine, prepared.view, prepared.pins)
        if broken:
            raise _violated(broken)
        return decision

    def _distrust(self, prepared: Prepared, broken: Mapping[str, str], found: str) -> str:
        if broken:
            raise _violated(broken)
        keys = [f"{name} {key}" for name, key in prepared.view.layout.relied_on if key.origin != "storage"]
        raise ViolatedKeys(tuple(keys), (found,))

    def _check_types(self, prepared: Prepared) -> None:
        """The plan is all there is."""

    def _outputs(self, prepared: Prepared) -> Outputs:
        return ()

    def _finish(
        self, outcome: Outcome, prepared: Prepared, edges: tuple[EdgeStatus, ...] | None = None, rebuilt: bool = False
    ) -> Outcome:
        pins = {str(n): p for n, p in prepared.pins.items()}
        return replace(outcome, pins=pins, foreign_keys=self._edges(prepared, edges))


def _violated(broken: Mapping[str, str]) -> ViolatedKeys:
    return ViolatedKeys(tuple(broken), tuple(f"{key}: {example}" for key, example in broken.items()))

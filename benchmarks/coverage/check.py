"""The check of one model, on any engine: build, then rounds of changes, each followed by a refresh and a comparison."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from benchmarks.coverage.compare import Row, unmatched
from dbt_ivm.api import plan_view
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog, Table
from dbt_ivm.names import STORAGE_SUFFIX
from dbt_ivm.refresh.choose import choose
from dbt_ivm.refresh.decide import INCREMENTAL
from dbt_ivm.refresh.keeping import APPLY, REWRITE, Keeping, Step
from dbt_ivm.refresh.options import Options
from dbt_ivm.refresh.plan import RefreshPlan
from dbt_ivm.refresh.run import run_steps
from dbt_ivm.refresh.state import LOG_MODE
from dbt_ivm.refresh.view import CompiledView, compile_view

EQUAL, WRONG, ERROR, NOT_CHECKED = "equal", "WRONG", "error", ""

Versions = Mapping[str, int]


@dataclass(frozen=True)
class Checked:
    """``rows`` of the result after each round; ``moved`` rounds changed it."""

    verdict: str = NOT_CHECKED
    detail: str = ""
    rows: tuple[int, ...] = ()
    moved: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.verdict}: {self.detail}" if self.detail else self.verdict


@dataclass(frozen=True)
class Comparison:
    """How many rows the facade has, and what only the facade or only the query has."""

    rows: int
    too_many: list[Row]
    missing: list[Row]


class Engine(ABC):
    """Where the statements of one model run; versions are per table, by its full name."""

    @abstractmethod
    def load(self) -> Versions: ...

    @abstractmethod
    def change(self, number: int) -> Versions: ...

    @abstractmethod
    def execute(self, step: Step, plan: RefreshPlan) -> Sequence[Mapping[str, Any]]: ...

    @abstractmethod
    def forget(self, plan: RefreshPlan) -> None:
        """Drops what the refresh kept for itself."""

    @abstractmethod
    def compare(self, facade: exp.Select, versions: Versions) -> Comparison:
        """The facade's rows with those of the query at these versions."""

    @abstractmethod
    def moved(self, before: Versions, now: Versions) -> bool:
        """Whether the query's result differs between the versions."""


@dataclass
class Check:
    """``keeping`` says whether small changes are fetched and whether the change is looked at first."""

    sql: str
    tables: list[Table]
    model: str
    engine: Engine
    options: dict[str, Any] = field(default_factory=dict)
    keeping: Keeping = field(default_factory=lambda: Keeping(fetches=False))

    def run(self, rounds: int) -> Checked:
        if self.view.refusal is not None:
            return Checked(WRONG, f"not incremental, {self.view.refusal.reason}")
        self.seq, self.dangling = 1, dict[str, int]()
        versions = self.engine.load()
        self.refresh(None, versions)
        so_far = self.compare(Checked(EQUAL), versions, "after the build")
        for number in range(1, rounds + 1):
            if so_far.verdict != EQUAL:
                break
            before, versions = versions, self.engine.change(number)
            strategy = self.refresh(before, versions)
            if strategy != INCREMENTAL:
                return replace(so_far, verdict=WRONG, detail=f"not incremental, {strategy} in round {number}")
            so_far = replace(so_far, moved=so_far.moved + self.engine.moved(before, versions))
            so_far = self.compare(so_far, versions, f"after round {number}")
        return so_far

    def compare(self, so_far: Checked, versions: Versions, when: str) -> Checked:
        found = self.engine.compare(self.facade(), versions)
        problem = unmatched(found.too_many, found.missing)
        so_far = replace(so_far, rows=(*so_far.rows, found.rows))
        return replace(so_far, verdict=WRONG, detail=f"{when}, {problem}") if problem else so_far

    def refresh(self, before: Versions | None, now: Versions) -> str:
        """Builds (``before`` is None) or refreshes; the strategy that was planned."""

        def plan_with(keeping: Keeping) -> RefreshPlan:
            return plan_view(
                self.sql,
                self.tables,
                model=self.model,
                changes=None if before is None else {n: (before[n], v) for n, v in now.items()},
                versions=now,
                options=self.options,
                seq=self.seq,
                dangling=self.dangling,
                keeping=keeping,
            )

        plan, _ = run_steps(plan_with, self.keeping, self.execute)
        self.engine.forget(plan)
        self.dangling = dict(plan.commit.dangling) if plan.commit else {}
        return plan.strategy

    def execute(self, step: Step, plan: RefreshPlan) -> Sequence[Mapping[str, Any]]:
        rows = self.engine.execute(step, plan)
        if step.kind == APPLY:
            self.seq += 1
        elif step.kind == REWRITE:
            self.seq = 1
        return rows

    @property
    def view(self) -> CompiledView:
        return compile_view(self.sql, Catalog.of(self.tables), Options.of(self.options))

    def facade(self) -> exp.Select:
        mode = choose(Options.of(self.options), self.view.layout).mode
        storage = RelationName.parse(self.model + STORAGE_SUFFIX).table()
        return self.view.facade_select(storage, live=mode == LOG_MODE)

"""The loop: projects one after another, each built, warmed up, measured cell by cell and removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.apply import compaction, reading
from benchmarks.apply.changes import change
from benchmarks.apply.grid import LARGE, LARGEST, MUST_SHOW_REPETITIONS, Cell, Plan, Scale
from benchmarks.apply.measure import Refresh, refresh
from benchmarks.apply.progress import Progress, reading_weight, weight
from benchmarks.apply.project import IVM_WAYS, Project
from benchmarks.apply.tables import Tables
from benchmarks.equality import Differs, checksum, difference
from benchmarks.results import Record, Results
from benchmarks.session import spark_session
from benchmarks.stages import Stages

#: a way slower than this is measured once per cell, unless the cell must be shown
SLOW_SECONDS = 20.0
#: cost and result do not depend on what was refreshed before, so they never have to catch up
STATELESS_WAYS = ("rebuild", "rewrite")


@dataclass
class Options:
    repetitions: int
    scale: Scale
    resume: bool = False
    source_deletion_vectors: bool = False

    @property
    def must_show_repetitions(self) -> int:
        fewest = MUST_SHOW_REPETITIONS if self.scale.factor == 1 else 1
        return max(self.repetitions, fewest)


class Runner:
    def __init__(self, results: Results, options: Options, folder: Path) -> None:
        self.results = results
        self.options = options
        self.folder = folder
        self.spark = spark_session(self.folder / "warehouse")
        self.stages = Stages(self.spark)
        self.projects = 0
        compaction.turn_off()

    def run(self, plans: list[Plan], progress: Progress) -> None:
        done = self.results.done() if self.options.resume else set()
        for plan in plans:
            steps = {_step(plan, cell) for cell in plan.cells} | {_step(plan)}
            if steps <= done:
                progress.skip(plan)
                continue
            self.results.remove(steps - done)
            for cell in plan.cells:
                if _step(plan, cell) in done:
                    progress.advance(weight(plan, cell), cells=1)
            left = tuple(cell for cell in plan.cells if _step(plan, cell) not in done)
            self._measure(replace(plan, cells=left) if left else plan, done, progress)

    # ------------------------------------------------------------------ one project
    def project(self, plan: Plan) -> Project:
        self.projects += 1
        rows_per_group = None if plan.view == "join" else 1 if plan.size == LARGEST else 2
        schema, rows = f"bench_{self.projects}", self.options.scale.rows(plan.size)
        vectors = self.options.source_deletion_vectors
        tables = Tables(self.spark, self.folder / "warehouse", schema, plan.width, rows, rows_per_group, vectors)
        return Project(self.folder / schema, tables, plan.view, plan.ways)

    def warm_up_jvm(self, plan: Plan) -> None:
        """Not measured: classes loaded and the ways compiled before the first cell."""
        project = self.project(plan)
        for kind in ("", "warm up", "mixed random"):
            if kind:
                change(project.tables, kind, 100)
            for way in project.ways:
                project.run(way)
        project.remove()

    def _measure(self, plan: Plan, done: set[tuple[Any, ...]], progress: Progress) -> None:
        progress.show(f"{plan.name}: building")
        project = self.project(plan)
        try:
            for way in project.ways:
                project.run(way)
            change(project.tables, "warm up", 100)
            state = State(plan, project, compaction.Logs(project), self.stages)
            state.catch_up(project.ways)
            progress.built(plan)
            for cell in plan.cells:
                if _step(plan, cell) not in done:
                    progress.show(f"{plan.name}: {cell.change} {cell.keys:,}")
                    self._save(plan, _step(plan, cell), self._cell(state, cell, progress.show))
                    progress.advance(weight(plan, cell), cells=1)
            if _step(plan) not in done:
                self._save(plan, _step(plan), self._afterwards(state, progress))
            progress.advance(reading_weight(plan))
        finally:
            project.remove()

    def _save(self, plan: Plan, step: tuple[Any, ...], records: list[Record]) -> None:
        about = {"part": plan.part, "view": plan.view, "width": plan.width, "size": plan.size, "step": list(step)}
        self.results.append([about | r for r in [*records, {"kind": "done"}]])

    def _cell(self, state: State, cell: Cell, show: Callable[[str], None]) -> list[Record]:
        must_show = cell.part == "must-show"
        repetitions = self.options.must_show_repetitions if must_show else self.options.repetitions
        about = {"kind": "refresh", "change": cell.change, "keys": cell.keys}
        records: list[Record] = []
        slow: set[str] = set()
        state.catch_up(cell.ways)
        for repetition in range(repetitions):
            show(f"{state.plan.name}: {cell.change} {cell.keys:,}, {repetition + 1} of {repetitions}")
            change(state.project.tables, cell.change, self.options.scale.keys(cell.keys))
            state.behind |= set(state.project.ways)
            ways = [w for w in cell.ways if w not in slow]
            turn = repetition % len(ways)
            found = [state.refresh(way) for way in ways[turn:] + ways[:turn]]
            show(", ".join(f"{f.model} {f.seconds:.1f} s" for f in found))
            if not must_show:
                slow |= {f.model for f in found if f.seconds > SLOW_SECONDS}
            ends = repetition == repetitions - 1 or set(ways) <= slow
            wrong = state.compare(cell, [f.model for f in found], thoroughly=set(ways) if ends else slow)
            records += [
                {**about, "repetition": repetition, "equal": f.model not in wrong, **f.as_record()} for f in found
            ]
            records += state.tidy(ways)
            if ends:
                break
        return records

    def _afterwards(self, state: State, progress: Progress) -> list[Record]:
        """Reading the facade, compaction, refreshes with nothing to do."""
        plan = state.plan
        records: list[Record] = []
        kept = tuple(w for w in ("merge", "log") if w in state.project.ways and (plan.size < LARGEST or w == "log"))
        if plan.part == "must-show" or plan.size < LARGE:
            progress.show(f"{plan.name}: nothing changed")
            state.catch_up(kept)
            records += reading.idle(state.project, state.stages, kept, self.options.must_show_repetitions)
        if plan.shares:
            progress.show(f"{plan.name}: reading")
            state.catch_up(("log",))
            records += reading.reading(state.project, state.logs, state.stages, state.rows, plan.shares)
            records.append(state.logs.compact("log", state.rows))
        return records


@dataclass
class State:
    """A project while it is measured: which models lag behind the sources, how long their logs are."""

    plan: Plan
    project: Project
    logs: compaction.Logs
    stages: Stages

    def __post_init__(self) -> None:
        self.behind: set[str] = set(self.project.ways)

    @property
    def rows(self) -> int:
        tables = self.project.tables
        return tables.rows // (2 if self.plan.view == "aggregate" and tables.step == 1 else 1)

    def catch_up(self, ways: tuple[str, ...]) -> None:
        """Models that skipped repetitions of the last cell must not carry its changes into the next."""
        for way in ways:
            if way in self.behind and way not in STATELESS_WAYS:
                self.refresh(way)

    def refresh(self, way: str) -> Refresh:
        found = refresh(self.project, way, self.stages)
        self.behind.discard(way)
        self.logs.note(found)
        return found

    def compare(self, cell: Cell, ways: list[str], thoroughly: set[str]) -> set[str]:
        """Models that differ from the query; only the one written by hand may.

        Args:
            thoroughly: ways that are not run again in this cell.
        """
        run, columns = self.project.tables.sql, self.project.columns
        other = self.project.reference(is_rebuilt="rebuild" in ways)
        expected, wrong = checksum(run, columns, other), set()
        for way in ways:
            if way == "rebuild" or (way == "by_hand" and way not in thoroughly and self.plan.size >= LARGE):
                continue
            mine = self.project.relation(way)
            why = "another checksum" if checksum(run, columns, mine) != expected else ""
            if way in thoroughly and not why and self.plan.size < LARGE:
                why = difference(run, columns, mine, other)
            if why and way in IVM_WAYS:
                raise Differs(f"{self.plan.name}, {cell.change}, {cell.keys} keys: {way} differs from the query: {why}")
            if why:
                wrong.add(way)
        return wrong

    def tidy(self, ways: list[str]) -> list[Record]:
        """Room on the disk, and compaction where the rule would have compacted."""
        for way in ways:
            if way in STATELESS_WAYS and self.plan.size >= LARGE:
                self.project.tables.vacuum(self.project.storage(way))
        return self.logs.compact_due(self.rows)


def _step(plan: Plan, cell: Cell | None = None) -> tuple[Any, ...]:
    last = (cell.change, cell.keys) if cell else ("afterwards", 0)
    return (plan.part, plan.view, plan.width, plan.size, *last)

"""The loop: view by view; loaded, built, warmed up, measured round by round and removed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.dbt_project import DbtFailed
from benchmarks.equality import Checksum, checksum, difference
from benchmarks.keys import measure
from benchmarks.keys.data import Data
from benchmarks.keys.plan import Plan
from benchmarks.keys.project import KeysProject, model_name, with_tables
from benchmarks.keys.sources import Sources
from benchmarks.keys.strategies import BY_HAND_RIGHT, STRATEGIES, TABLE
from benchmarks.keys.views import GROUPED, PLAIN
from benchmarks.progress import ProgressBar
from benchmarks.results import Record, Results
from benchmarks.session import spark_session
from benchmarks.stages import Stages

Model = tuple[str, str]  # shape, strategy


class Runner:
    def __init__(self, results: Results, data: Data, folder: Path, resume: bool) -> None:
        self.results = results
        self.data = data
        self.folder = folder
        self.resume = resume
        self.spark = spark_session(folder / "warehouse")
        self.stages = Stages(self.spark)

    def run(self, plans: list[Plan], progress: ProgressBar) -> None:
        done = self.results.done() if self.resume else set()
        for plan in plans:
            if plan.step in done:
                progress.advance(plan.weight, cells=1)
                continue
            self.results.remove({plan.step})
            state = Round(plan, self)
            try:
                self._measure(state, progress)
            finally:
                state.sources.drop()
        self.spark.stop()

    def _measure(self, state: Round, progress: ProgressBar) -> None:
        plan = state.plan
        progress.show(f"{plan.view.name}: loading")
        state.start()
        progress.advance(plan.round_weight * 2)
        for number in range(plan.rounds):
            repetition = number - plan.warm_ups
            label = f"{repetition + 1} of {plan.repetitions}" if repetition >= 0 else "warming up"

            def show(text: str, label: str = label) -> None:
                progress.show(f"{plan.view.name}, {label}: {text}")

            records = state.run(number, show)
            if repetition >= 0:
                self.save(plan, [{"repetition": repetition, **record} for record in records])
            progress.advance(plan.round_weight)
        self.save(plan, [{"kind": "done"}])
        progress.advance(0, cells=1)

    def save(self, plan: Plan, records: list[Record]) -> None:
        setting = plan.setting
        about = {"scale": setting.scale, "share": setting.share, "change": setting.change, "view": plan.view.name}
        self.results.append([{"step": list(plan.step), **about, **record} for record in records])


class Round:
    """A view while it is measured; a model that failed is left out from then on."""

    def __init__(self, plan: Plan, runner: Runner) -> None:
        self.plan = plan
        self.runner = runner
        self.spark, self.stages = runner.spark, runner.stages
        schema = f"bench_{plan.view.name}"
        self.sources = Sources(self.spark, runner.folder / schema, schema, plan.view, runner.data)
        self.project = KeysProject(runner.folder / f"{schema}_project", schema, plan.view, plan.models)
        self.models: list[Model] = list(plan.models)

    def start(self) -> None:
        setting = self.plan.setting
        self.sources.load(setting.change, setting.share, self.plan.rounds)
        self.sources.check_references()
        built = [self._guarded(model, self._refresh) for model in self.plan.models]
        failed = [record for record in built if record["kind"] == "failed"]
        self.runner.save(self.plan, [{**record, "repetition": -1} for record in failed])
        if not self.models:
            raise DbtFailed(failed[0]["message"])

    def run(self, number: int, show: Callable[[str], None]) -> list[Record]:
        """The change, then all deltas, then all refreshes, so that no refresh finds the files of its own delta warm."""
        show("changing the sources")
        start = time.perf_counter()
        counts = self.sources.change(self.plan.setting.change, number)
        records: list[Record] = [{"kind": "change", "tables": counts, "seconds": time.perf_counter() - start}]
        found: dict[Model, Record] = {}
        for measured in (self._delta, self._refresh):
            for model in self._rotated(number):
                if measured == self._delta and not STRATEGIES[model[1]].has_delta:
                    continue
                show(f"{measured.__name__.strip('_')} of {model_name(self.plan.view, *model)}")
                record = self._guarded(model, measured)
                found[model] = {**found.get(model, {}), **record}
        self._add_the_plain_part(found)
        show("comparing")
        self._compare(found)
        self.sources.check_references()
        self._tidy()
        return [*records, *({**r, "kind": r["kind"] or "refresh"} for r in found.values())]

    def _rotated(self, number: int) -> list[Model]:
        """Another strategy first in each round; plain models first, one of the grouped stands on one of them."""
        found: list[Model] = []
        for shape in (PLAIN, GROUPED):
            models = [model for model in self.models if model[0] == shape]
            turn = number % max(1, len(models))
            found += models[turn:] + models[:turn]
        return found

    def _delta(self, model: Model) -> Record:
        return measure.delta_only(self.project, self.spark, self.stages, *model)

    def _refresh(self, model: Model) -> Record:
        return measure.refresh(self.project, self.stages, *model)

    def _guarded(self, model: Model, measured: Callable[[Model], Record]) -> Record:
        """A failure is a result, too: one strategy must not end a run of hours."""
        about: Record = {"kind": "", "shape": model[0], "strategy": model[1]}
        try:
            return about | measured(model)
        except DbtFailed as error:
            self.models = [m for m in self.models if m != model]
            return about | {"kind": "failed", "message": str(error)[:2_000]}

    def _add_the_plain_part(self, found: dict[Model, Record]) -> None:
        grouped, plain = found.get((GROUPED, BY_HAND_RIGHT)), found.get((PLAIN, BY_HAND_RIGHT))
        if grouped and plain and not grouped["kind"] and not plain["kind"]:
            for name in ("seconds", "rows_read", "cpu_seconds", "shuffle_bytes"):
                grouped[name] += plain[name]

    # ------------------------------------------------------------------ is it right?
    def _compare(self, found: dict[Model, Record]) -> None:
        """Every model against the table built from the same sources, or the query where there is none."""
        run = self.sources.sql
        expected: dict[str, Checksum] = {}
        for (shape, strategy), record in found.items():
            if record["kind"]:
                continue
            columns, other = list(self.plan.view.outputs(shape)), self._reference(shape)
            if shape not in expected:
                expected[shape] = checksum(run, columns, other)
            mine = self.project.relation(shape, strategy)
            is_equal = strategy == TABLE or checksum(run, columns, mine) == expected[shape]
            record |= {"rows": expected[shape][0], "equal": is_equal, "why": ""}
            if not is_equal:
                record["why"] = difference(run, columns, mine, other)[:500]

    def _reference(self, shape: str) -> str:
        if (shape, TABLE) in self.models:
            return self.project.relation(shape, TABLE)
        return f"({with_tables(self.plan.view.query(shape), self.plan.view, self.project.schema + '.{0}')})"

    def _tidy(self) -> None:
        for shape, strategy in self.models:
            if not STRATEGIES[strategy].is_ours:
                self.sources.vacuum(self.project.relation(shape, strategy))

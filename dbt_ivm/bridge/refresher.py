"""One refresh of one model, from reading the state to the commit: the protocol of docs/architecture.md.

    relations → state → compile → pin → decide → (none | rebuild | apply) → outcome

Decisions are made in ``refresh/``; this file asks the engine for facts, runs the steps and maps failures.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from dbt_ivm.bridge.auxiliary import AuxiliaryViews, ViolatedKeys
from dbt_ivm.bridge.engine import Engine, EngineError
from dbt_ivm.bridge.facade import Facade, Outputs
from dbt_ivm.bridge.failures import Failure, Remedy, classify
from dbt_ivm.bridge.log_table import FOREIGN_COMMIT, LogTable
from dbt_ivm.bridge.metadata import MetadataReader, Stored
from dbt_ivm.bridge.outcome import Outcome
from dbt_ivm.bridge.request import Request
from dbt_ivm.bridge.verify_keys import violated_keys
from dbt_ivm.catalog.clock import clock_kind
from dbt_ivm.catalog.describe import IDENTITY_PROPERTY
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog
from dbt_ivm.errors import InternalError, StrictRefusal, UserError
from dbt_ivm.refresh.choose import Choice, choose
from dbt_ivm.refresh.compact import is_due
from dbt_ivm.refresh.decide import CREATE, FULL, INCREMENTAL, NONE, Decision, Situation, decide
from dbt_ivm.refresh.foreign_keys import EdgeStatus, not_used
from dbt_ivm.refresh.keeping import APPLY, KEEP, REWRITE, Keeping, Step, drop_statement
from dbt_ivm.refresh.options import Options
from dbt_ivm.refresh.plan import (
    RefreshPlan,
    Target,
    delta_query,
    following_state,
    log_so_far,
    plan_refresh,
    view_edges,
)
from dbt_ivm.refresh.rewrite import preview
from dbt_ivm.refresh.run import run_steps
from dbt_ivm.refresh.state import LOG_MODE, MERGE_MODE, Pin, RowCounts, State, UnreadableState
from dbt_ivm.refresh.view import CompiledView, compile_view


@dataclass
class Prepared:
    """Everything known before a decision."""

    catalog: Catalog
    stored: Stored | None
    view: CompiledView
    pins: dict[RelationName, Pin]
    outputs: tuple[tuple[str, str], ...] = ()
    distrusted: tuple[str, ...] = ()
    degraded: str = ""

    @property
    def state(self) -> State | None:
        return self.stored.state if self.stored else None


class Refresher:
    def __init__(
        self,
        engine: Engine,
        request: Request,
        warn: Callable[[str], None] = lambda message: None,
        reader: MetadataReader | None = None,
    ) -> None:
        self.engine = engine
        self.request = request
        self.warn = warn
        self.reader = reader or MetadataReader(engine, request.keys)
        self.facade = Facade(engine, request)
        self.log = LogTable(engine, self.reader, request, warn)
        self.parts = AuxiliaryViews(engine, request, self.reader, warn)
        #: Names what this run builds, if it builds; a plan that is only shown is the same each time.
        self.build: int | None = None

    # ------------------------------------------------------------------ the protocol
    def run(self) -> Outcome:
        self.build = secrets.randbits(48)
        if self.request.is_empty_run and self.request.storage_exists:
            return Outcome.of(NONE, "--empty leaves an existing model as it is", self.engine)
        prepared, decision = self._look()
        if decision.strategy == INCREMENTAL and self._changes_mode(prepared):
            prepared, decision = self._look()
        self._warn_about_feeds(prepared)
        if decision.strategy == NONE:
            return self._nothing_to_do(prepared, decision)
        if decision.strategy == INCREMENTAL:
            return self._apply(prepared, decision)
        return self._rebuild(prepared, decision)

    def _look(self) -> tuple[Prepared, Decision]:
        with self.engine.timed("plan"):
            prepared = self.prepare(refreshing=True)
            decision = self.decide(prepared)
            if prepared.degraded and decision.strategy in (CREATE, FULL):
                asked = [decision.reason] if self.request.asked_full else []
                decision = replace(decision, reason="; ".join([*asked, prepared.degraded]))
            return prepared, decision

    def prepare(self, refreshing: bool = False) -> Prepared:
        """Facts and the compiled view; nothing is written, except that auxiliary views are refreshed when asked for."""
        request = self.request
        catalog = self.reader.catalog_of(request.sql)
        self._refuse_self_reference(catalog)
        stored = self.reader.stored(request.storage) if request.storage_exists else None
        asked_full = request.asked_full
        distrusted = stored.state.distrusted if stored and stored.state and not asked_full else ()
        view = self._compile(catalog, distrusted)
        outputs: tuple[tuple[str, str], ...] = ()
        if view.refusal:
            outputs = self.reader.query_columns(request.sql)
            view = self._compile(catalog, distrusted, tuple(n for n, _ in outputs))
        prepared = Prepared(catalog, stored, view, {}, outputs, distrusted)
        self._look_at_parts(prepared, refreshing)
        return prepared

    def _look_at_parts(self, prepared: Prepared, refreshing: bool) -> None:
        """Auxiliary views first, then the versions that this view reads; without those that cannot be kept."""
        while True:
            try:
                self.parts.look(prepared.view, refreshing)
                break
            except ViolatedKeys as violated:
                self._go_on_without(prepared, violated)
        recorded = prepared.state.sources if prepared.state else {}
        prepared.pins = {t.name: self.reader.pin(t, recorded.get(str(t.name))) for t in prepared.view.tables}

    def _go_on_without(self, prepared: Prepared, violated: ViolatedKeys) -> None:
        """An auxiliary view has no key: the model is kept without it, as without that key."""
        forced = self.request.asked_full or not self.request.storage_exists
        strict = self.request.options.refresh == "strict" and not forced
        reason = "; ".join(self._key_violation(told, strict) for told in violated.told)
        if strict:
            raise StrictRefusal(reason)
        if set(violated.keys) <= set(prepared.distrusted):
            raise InternalError(f"an auxiliary view relies on {', '.join(violated.keys)} although that is distrusted")
        prepared.degraded = "; ".join(r for r in (prepared.degraded, reason) if r)
        prepared.distrusted = (*prepared.distrusted, *violated.keys)
        prepared.view = self._compile(prepared.catalog, prepared.distrusted)

    def decide(self, prepared: Prepared) -> Decision:
        stored = prepared.stored
        return decide(
            Situation(
                view=prepared.view,
                options=self._policy(),
                pins={str(n): p for n, p in prepared.pins.items()},
                state=stored.state if stored else None,
                state_problem=stored.problem if stored else "",
                asked_full=self.request.asked_full,
            )
        )

    def _policy(self) -> Options:
        """A build with --empty holds no rows, so there is nothing that could be silently rebuilt."""
        options = self.request.options
        return replace(options, refresh="auto") if self.request.is_empty_run else options

    def explain(self) -> str:
        """What the next refresh would do; nothing is written."""
        prepared = self.prepare()
        plan = self.plan(prepared, self.decide(prepared))
        return replace(plan, auxiliary=self.parts.plans(prepared.view)).explain()

    def next_rows(self, prepared: Prepared) -> exp.Query | None:
        """The rows that the next incremental refresh would apply; None when they cannot be shown or there are none."""
        view, pins, state = prepared.view, prepared.pins, prepared.state
        if state is not None and self.parts.are_behind(view):  # the same rows from the tables themselves
            state = self.parts.together(view, state)
            plain = replace(self.request.options, auxiliary="off")
            view = compile_view(self.request.sql, prepared.catalog, plain, (), prepared.distrusted)
            recorded = state.sources if state else {}
            pins = {t.name: self.reader.pin(t, recorded.get(str(t.name))) for t in view.tables}
        return None if state is None else delta_query(view, self.target(view), pins, state)

    def plan(self, prepared: Prepared, decision: Decision, keeping: Keeping | None = None) -> RefreshPlan:
        """The steps; a refresh of a large table is planned with looks at the change first."""
        choice = self.choice(prepared)
        return plan_refresh(
            prepared.view,
            self.target(prepared.view),
            decision,
            prepared.pins,
            prepared.state,
            self._next_state(prepared, decision),
            keeping or self._keeping(choice),
            choice.why if decision.strategy == INCREMENTAL else "",
        )

    # ------------------------------------------------------------------ the three endings
    def _nothing_to_do(self, prepared: Prepared, decision: Decision) -> Outcome:
        outcome = Outcome.of(NONE, decision.reason, self.engine)
        state = prepared.state
        outcome = replace(
            outcome, seq=state.seq if state else None, total=prepared.stored.rows if prepared.stored else None
        )
        return self._finish(outcome, prepared)

    def _apply(self, prepared: Prepared, decision: Decision) -> Outcome:
        if self._mode(prepared) == LOG_MODE:
            self.facade.show_live_rows(prepared.view, partial(self._outputs, prepared))
        try:
            plan, result = self._run_steps(prepared, decision)
        except EngineError as error:
            return self._after_failure(prepared, classify(str(error)), error)
        if self._mode(prepared) == LOG_MODE:
            return self._logged(prepared, plan)
        counts = _merge_counts(result) if plan.way != "state only" else RowCounts()
        before = prepared.stored.rows if prepared.stored else None
        total = None if before is None else before + (counts.inserted or 0) - (counts.deleted or 0)
        outcome = replace(
            Outcome.of(INCREMENTAL, "", self.engine), way=plan.way, why=plan.why, rows=counts, total=total, seq=plan.seq
        )
        return self._finish(outcome, prepared, plan.edges)

    def _run_steps(self, prepared: Prepared, decision: Decision) -> tuple[RefreshPlan, Sequence[Mapping[str, object]]]:
        """Keep what is used twice, look at it, commit; what was kept goes in any case."""
        kept: list[str] = []

        def plan_with(keeping: Keeping) -> RefreshPlan:
            with self.engine.timed("plan"):
                return self.plan(prepared, decision, keeping)

        def execute(step: Step, plan: RefreshPlan) -> Sequence[Mapping[str, object]]:
            commits = step.kind in (APPLY, REWRITE)
            if commits:
                self._refuse_violations(plan)
            with self.engine.timed("apply" if commits else "delta"):
                if step.kind != KEEP:
                    return self.engine.rows(step.sql)
                kept.append(step.name)
                return self._keep(step)

        try:
            return run_steps(plan_with, self._keeping(self.choice(prepared)), execute)
        finally:
            for name in reversed(kept):
                with contextlib.suppress(EngineError):
                    self.engine.rows(drop_statement(name))

    def _keeping(self, choice: Choice) -> Keeping:
        return Keeping(self.request.kept, choice.looks)

    def _keep(self, step: Step) -> Sequence[Mapping[str, object]]:
        try:
            return self.engine.rows(step.sql)
        except EngineError as error:
            if classify(str(error)).remedy is not Remedy.RAISE:
                raise
            return self.engine.rows(step.without_keeping)  # an engine that keeps nothing computes it at every mention

    def _logged(self, prepared: Prepared, plan: RefreshPlan) -> Outcome:
        """After a commit by log: was it ours, what did it count, is compaction due?"""
        assert prepared.stored is not None and prepared.stored.state is not None
        try:
            with self.engine.timed("apply"):
                written = self.log.written(prepared.stored, plan)
        except UnreadableState as error:
            # two writers in the moment that no check covers: exact again before anybody goes on
            another = "another run rebuilt the storage table while this one refreshed it"
            reason = FOREIGN_COMMIT if str(error) == FOREIGN_COMMIT else another
            return self._rebuild(self.prepare(refreshing=True), Decision(FULL, reason))
        if written is None:
            raise UserError(
                "IVM_CONCURRENT",
                "another run refreshed this model at the same time; nothing was written by this run. "
                "Run the model again.",
            )
        state, changed = written
        before = prepared.stored.rows
        known = before is not None and changed.inserted is not None and changed.deleted is not None
        total = (before or 0) + (changed.inserted or 0) - (changed.deleted or 0) if known else None
        outcome = replace(
            Outcome.of(INCREMENTAL, "", self.engine),
            way=plan.way,
            why=plan.why,
            rows=changed,
            total=total,
            seq=plan.seq,
        )
        if is_due(state.tombstones, total, state.refreshes, self.request.options.compact_at):
            with self.engine.timed("apply"):
                done = self.log.compact(prepared.view, state, total)
            if done:
                outcome = replace(outcome, way=f"{plan.way}, then compaction", seq=state.seq + 1)
        return self._finish(outcome, prepared, plan.edges)

    def compact_now(self) -> str:
        """Compaction asked for by the user."""
        if not self.request.storage_exists:
            return "not built yet"
        prepared = self.prepare()
        told = [f"{name}: {text}" for name, text in self.parts.compact(prepared.view).items()]
        return "; ".join([self._compact(prepared), *told])

    def _compact(self, prepared: Prepared) -> str:
        if prepared.state is None:
            return f"left alone: {prepared.stored.problem if prepared.stored else 'no state'}"
        if prepared.state.mode != LOG_MODE:
            return "kept by merge, nothing to compact"
        state = prepared.state
        if state.fingerprint != prepared.view.fingerprint:
            return "left alone: its definition or keys changed, the next run rebuilds it"
        if not state.refreshes:
            return "nothing to compact"
        done = self.log.compact(prepared.view, state, prepared.stored.rows if prepared.stored else None)
        return f"{state.tombstones:,} dead rows removed" if done else "another writer came first; run it again"

    def choice(self, prepared: Prepared) -> Choice:
        stored = prepared.stored
        known = stored.last_known if stored else None
        current = known.mode if known else MERGE_MODE
        return choose(self.request.options, prepared.view.layout, current, stored.rows if stored else None)

    def _mode(self, prepared: Prepared) -> str:
        return self.choice(prepared).mode

    def _changes_mode(self, prepared: Prepared) -> bool:
        """Between merge and log the table changes over in a commit of its own, which writers of both modes respect."""
        state, wanted = prepared.state, self._mode(prepared)
        if state is None or state.mode == wanted:
            return False
        with self.engine.timed("apply"):
            if wanted == LOG_MODE:
                assert prepared.stored is not None
                self.facade.show_live_rows(prepared.view, partial(self._outputs, prepared))
                self.log.enter(prepared.stored, state)
            elif not self.log.compact(prepared.view, state, None, MERGE_MODE):
                raise UserError("IVM_CONCURRENT", "another run refreshed this model at the same time. Run it again.")
        return True

    def _after_failure(self, prepared: Prepared, failure: Failure, error: EngineError) -> Outcome:
        if failure.remedy is Remedy.RAISE:
            raise error
        if self._moved_on(prepared):  # a stale refresh may trip over another guard before the sequence number
            failure = Failure(Remedy.RERUN, "another run refreshed this model at the same time")
        if failure.remedy is Remedy.RERUN:
            raise UserError(
                "IVM_CONCURRENT", f"{failure.reason}; nothing was written by this run. Run the model again."
            ) from error
        reason = failure.reason
        if failure.remedy is Remedy.DISTRUST_KEY:
            broken = violated_keys(self.engine, prepared.view, prepared.pins)  # which one: the refresh saw only rows
            reason = self._distrust(prepared, broken, failure.reason)
        if self.request.options.refresh == "strict":
            raise StrictRefusal(reason) from error
        return self._rebuild(prepared, Decision(FULL, reason))

    def _distrust(self, prepared: Prepared, broken: Mapping[str, str], found: str) -> str:
        """Go on without the broken keys, or without all when none of them is any more; the reason."""
        keys = [f"{name} {key}" for name, key in prepared.view.layout.relied_on if key.origin != "storage"]
        told = "; ".join(f"{key}: {example}" for key, example in broken.items()) or found
        reason = self._key_violation(told, self.request.options.refresh == "strict")
        self._without_keys(prepared, tuple(broken or keys))
        return reason

    def _without_keys(self, prepared: Prepared, keys: tuple[str, ...]) -> None:
        """The view compiled anew; which of its parts are kept apart may depend on the keys."""
        prepared.distrusted = (*prepared.distrusted, *keys)
        had_parts = prepared.view.auxiliary
        prepared.view = self._compile(prepared.catalog, prepared.distrusted)
        if had_parts or prepared.view.auxiliary:
            self._look_at_parts(prepared, refreshing=True)

    def _moved_on(self, prepared: Prepared) -> bool:
        """Whether the storage table has another sequence number than the one this refresh started from."""
        now = self.reader.stored(self.request.storage).last_known
        return now is not None and prepared.state is not None and now.seq != prepared.state.seq

    def _rebuild(self, prepared: Prepared, decision: Decision) -> Outcome:
        with self.engine.timed("plan"):
            self._outputs(prepared)
            decision = self._check_keys(prepared, decision)
            self._check_types(prepared)
        plan, _ = self._run_steps(prepared, decision)
        with self.engine.timed("apply"):
            commit = self.reader.commits(self.request.storage)[0]
        written = commit.counts.inserted
        total = written - 1 if written is not None else None
        outcome = Outcome.of(decision.strategy, decision.reason, self.engine)
        outcome = replace(outcome, way=plan.way, why=plan.why, rows=RowCounts(total, 0, 0), total=total, seq=plan.seq)
        return self._finish(outcome, prepared, plan.edges, rebuilt=True)

    # ------------------------------------------------------------------ parts
    def _compile(self, catalog: Catalog, distrusted: tuple[str, ...], visible: tuple[str, ...] = ()) -> CompiledView:
        return compile_view(
            self.request.sql, catalog, self.request.options, visible, distrusted, facade=self.request.facade
        )

    def _refuse_self_reference(self, catalog: Catalog) -> None:
        own = (self.request.facade, self.request.storage)
        if any(relation.name.matches(name) for relation in catalog.relations for name in own):
            raise UserError(
                "IVM_SELF_REFERENCE",
                f"the query reads {self.request.facade}, the relation this model is kept in; "
                "rename the model or give it another alias or schema",
            )

    def target(self, view: CompiledView) -> Target:
        table, identity = self.request.table, view.layout.identity
        if identity and view.layout.can_log:
            proven = {IDENTITY_PROPERTY: "|".join(identity)}
            table = replace(table, properties={**table.properties, **proven})
        return Target(self.request.storage, table)

    def _next_state(self, prepared: Prepared, decision: Decision) -> State:
        stored = prepared.stored
        known = stored.last_known if stored else None
        version = (stored.version if stored else -1) + 1
        build = version if self.build is None else self.build
        return following_state(
            known,
            prepared.view.fingerprint,
            {str(n): p.current for n, p in prepared.pins.items()},
            storage_version=version,
            rows=stored.rows if stored and decision.strategy == INCREMENTAL else None,
            distrusted=prepared.distrusted,
            is_empty_build=self.request.is_empty_run,
            reason=decision.reason,
            mode=self._mode(prepared),
            epoch=known.epoch if known and decision.strategy == INCREMENTAL else build,
            **(log_so_far(known) if known and decision.strategy == INCREMENTAL else {}),
        )

    def _check_keys(self, prepared: Prepared, decision: Decision) -> Decision:
        """A full build believes declared keys only after looking; without a violated one it may rely on others."""
        while violations := violated_keys(self.engine, prepared.view, prepared.pins):
            reason = "; ".join(self._key_violation(f"{key}: {example}") for key, example in violations.items())
            self._without_keys(prepared, tuple(violations))
            decision = replace(decision, reason="; ".join(r for r in (decision.reason, reason) if r))
        return decision

    def _check_types(self, prepared: Prepared) -> None:
        """The stored rows must have the query's types exactly; the engine says both before anything is written."""
        if prepared.view.is_opaque:
            return
        versions = {name: pin.current.version for name, pin in prepared.pins.items()}
        planned = self.reader.query_columns(preview(prepared.view, versions))
        for (name, wanted), (_, found) in zip(prepared.outputs, planned, strict=True):
            if wanted != found:
                raise InternalError(
                    f"column {name} is {wanted} in the query but {found} in its plan; "
                    "meta.ivm.refresh: full keeps the model without a plan"
                )

    def _key_violation(self, violation: str, strict: bool = False) -> str:
        reason = f"the declared key {violation} occurs more than once"
        if self.request.options.on_key_violation == "error":
            raise UserError(
                "IVM_KEY_VIOLATION",
                f"{reason}. Nothing was written (meta.ivm.on_key_violation: error). Repair the data or remove the key.",
            )
        if not strict:
            self.warn(
                f"{self.request.model}: {reason}. The model is kept without that key until a run with --full-refresh; "
                "its result is exact, refreshes are slower."
            )
        return reason

    def _warn_about_feeds(self, prepared: Prepared) -> None:
        from dbt_ivm.cdc.change_feed import FEED_PROPERTY, enable_statement

        if prepared.view.refusal:
            return
        for table in (t for t in prepared.view.tables if not clock_kind(t.name)):
            description = self.reader.describe(table.name)
            if description.is_delta and not description.has_property(FEED_PROPERTY):
                self.warn(
                    f"{self.request.model}: the change data feed of {table.name} is off, so this model is rebuilt in "
                    f"full whenever that table changes. Turn it on with: {enable_statement(table.name)}  "
                    "(or for all sources: dbt run-operation ivm_enable_change_feed)"
                )

    def _outputs(self, prepared: Prepared) -> Outputs:
        """Names and types of the query's columns, asked for once."""
        prepared.outputs = prepared.outputs or self.reader.query_columns(self.request.sql)
        return prepared.outputs

    def _refuse_violations(self, plan: RefreshPlan) -> None:
        """Before the commit: foreign keys that do not hold are an error where the user wants that."""
        broken = [f"{e.edge} is {e.status}" for e in plan.edges if e.is_violated]
        if broken and self.request.options.on_key_violation == "error":
            raise UserError(
                "IVM_KEY_VIOLATION",
                f"the declared foreign key {'; '.join(broken)}. Nothing was written "
                "(meta.ivm.on_key_violation: error). Repair the data or remove the key.",
            )

    def _edges(self, prepared: Prepared, told: tuple[EdgeStatus, ...] | None) -> tuple[EdgeStatus, ...]:
        """The declared foreign keys that are used; a warning for each that does not hold."""
        edges = view_edges(prepared.view, prepared.state) if told is None else told
        for edge in edges if told is not None else ():
            if edge.is_violated:
                self.warn(
                    f"{self.request.model}: the declared foreign key {edge.edge} is {edge.status}. "
                    "The result is exact; refreshes read more until the data is repaired."
                )
        return edges

    def _finish(
        self, outcome: Outcome, prepared: Prepared, edges: tuple[EdgeStatus, ...] | None = None, rebuilt: bool = False
    ) -> Outcome:
        """Sources and foreign keys in the response, and the facade when it is missing or no longer right."""
        below = self.parts.outcomes_of(prepared.view)
        edges = (*self._edges(prepared, edges), *(e for o in below.values() for e in o.foreign_keys))
        tables = [*prepared.view.tables, *(t for part in prepared.view.auxiliary for t in part.view.tables)]
        facade = None
        # the table as it is now decides, not what is wanted: a plain view over tombstones would show dead rows
        mode = self._mode(prepared) if rebuilt or prepared.state is None else prepared.state.mode
        if rebuilt or not self.facade.is_right(prepared.view, mode):
            facade = self.facade.query(prepared.view, self._outputs(prepared), mode)
        return replace(
            outcome,
            facade_sql=facade,
            pins=_by_name(prepared, below),
            foreign_keys=(*edges, *not_used(dict.fromkeys(tables), [e.edge for e in edges])),
            auxiliary={str(name): o for name, o in below.items()},
            statements=self.engine.statements,
            seconds=dict(self.engine.seconds),
        )


def _by_name(prepared: Prepared, below: Mapping[RelationName, Outcome]) -> dict[str, Pin]:
    """The sources of a model, those that only its auxiliary views read included."""
    found = {name: pin for outcome in below.values() for name, pin in outcome.pins.items()}
    return found | {str(n): p for n, p in prepared.pins.items()}


def _merge_counts(result: Sequence[Mapping[str, object]]) -> RowCounts:
    """Rows changed by a MERGE, from its own result; the state row's update is not counted."""
    row = result[0] if result else {}

    def count(name: str) -> int | None:
        value = row.get(name)
        return None if value is None else int(str(value))

    updated = count("num_updated_rows")
    return RowCounts(count("num_inserted_rows"), None if updated is None else updated - 1, count("num_deleted_rows"))


__all__ = ["CREATE", "Prepared", "Refresher"]

"""One refresh as a value: frozen steps, JSON, and explain over the same steps that run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.delta.context import DeltaContext, Window
from dbt_ivm.delta.kept import KeptChange, used_twice
from dbt_ivm.delta.weights import net
from dbt_ivm.operators import Operator
from dbt_ivm.refresh.apply import Applied, ApplyContext, apply_change
from dbt_ivm.refresh.apply.append import append_keyed
from dbt_ivm.refresh.apply.log import append_kept, logged_rows, look_at_rows, only_state, read_counts
from dbt_ivm.refresh.apply.seen import is_beyond, widened
from dbt_ivm.refresh.apply.staging import LOOK, Seen, look_statement, prunable, read_bounds
from dbt_ivm.refresh.apply.taken import EXAMPLE, look_at_stored, read_ranges, read_seen
from dbt_ivm.refresh.decide import CREATE, FULL, INCREMENTAL, NONE, Decision
from dbt_ivm.refresh.keeping import (
    APPLY,
    LOOK_AT_CHANGE,
    LOOK_AT_ROWS,
    LOOK_AT_STORED,
    REWRITE,
    Keeping,
    Step,
    keep_step,
)
from dbt_ivm.refresh.rewrite import rewrite
from dbt_ivm.refresh.state import LOG_MODE, Pin, RowCounts, SourceState, State
from dbt_ivm.refresh.view import CompiledView
from dbt_ivm.storage.delta_format import TableOptions
from dbt_ivm.storage.layout import Shape

SCHEMA_VERSION = 1

NOTHING_KNOWN = Keeping()
UNKNOWN = RowCounts(None, None, None)

#: Fields of a plan that its JSON shows as they are.
TOLD = ("schema_version", "strategy", "reason", "way", "why", "storage", "seq")

#: Ways that only depend on what changed.
FIXED_WAYS = {"append": "the change only adds rows", "state only": "no commit since the last refresh moved rows"}

#: Above this many changed rows a change is not broadcast.
BROADCAST_ROWS = 200_000


@dataclass(frozen=True)
class Target:
    """Where the view is kept, and what its table looks like."""

    storage: RelationName
    table: TableOptions = field(default_factory=TableOptions)


@dataclass(frozen=True)
class RefreshPlan:
    schema_version: int
    strategy: str
    reason: str
    way: str
    why: str
    storage: str
    seq: int
    steps: tuple[Step, ...]
    target: Target
    view: Operator | None = None
    delta: Operator | None = None
    notes: tuple[str, ...] = ()
    context: ApplyContext | None = None
    commit: State | None = None

    @property
    def view_plan(self) -> str:
        return self.view.explain() if self.view is not None else ""

    @property
    def delta_plan(self) -> str:
        return self.delta.explain() if self.delta is not None else ""

    def to_json(self) -> str:
        document: dict[str, Any] = {
            **{name: getattr(self, name) for name in TOLD},
            "view_plan": self.view_plan,
            "delta_plan": self.delta_plan,
            "steps": [{"kind": s.kind, "purpose": s.purpose, "sql": s.sql} for s in self.steps],
            "notes": list(self.notes),
        }
        return json.dumps(document, indent=2, sort_keys=True)

    def explain(self) -> str:
        """Stable text: strategy, view plan, delta plan, statements."""
        why = f" because {self.reason}" if self.reason else ""
        how = f" by {self.way}" if self.way else ""
        parts = [f"strategy: {self.strategy}{how}{why}"]
        parts += [f"way: {self.way} because {self.why}"] if self.why else []
        parts += [f"note: {n}" for n in self.notes]
        parts.append("view plan\n" + _indented(self.view_plan or "(none: the query is rebuilt as it is)"))
        if self.delta_plan:
            parts.append("delta plan\n" + _indented(self.delta_plan))
        for number, step in enumerate(self.steps, 1):
            parts.append(f"statement {number}: {step.purpose}\n" + _indented(step.sql))
        return "\n\n".join(parts) + "\n"


def plan_refresh(
    view: CompiledView,
    target: Target,
    decision: Decision,
    pins: Mapping[RelationName, Pin],
    state: State | None,
    next_state: State,
    keeping: Keeping = NOTHING_KNOWN,
    why: str = "",
) -> RefreshPlan:
    """The steps of one refresh; pure: the same arguments give the same text.

    Args:
        keeping: where to keep what is used twice, and what looks at it have told so far (``run_steps``).
        why: why this way to apply, for explain.
    """
    target.table.check(view.layout.stored)
    base = RefreshPlan(
        schema_version=SCHEMA_VERSION,
        strategy=decision.strategy,
        reason=decision.reason,
        way="",
        why="",
        storage=str(target.storage),
        seq=next_state.seq,
        steps=(),
        view=view.layout.rows,
        target=target,
        notes=view.notes,
    )
    if decision.strategy == NONE:
        return base
    versions = {name: pin.current.version for name, pin in pins.items()}
    if decision.strategy in (CREATE, FULL):
        sql = rewrite(view, target.storage, versions, next_state.seq, next_state.to_json(), target.table)
        purpose = "replace the storage table, data and state in one commit"
        return replace(base, way="rewrite", steps=(Step(REWRITE, purpose, sql),))
    assert decision.strategy == INCREMENTAL and state is not None
    ctx = _apply_context(view, target, pins, state, next_state)
    before, ctx = _kept_sources(ctx, keeping)
    kept, applied = _log_steps(ctx, keeping) if next_state.mode == LOG_MODE else _merge_steps(ctx, target, keeping)
    step = Step(APPLY, f"{applied.way}: data and state in one commit", applied.sql)
    return replace(
        base,
        way=applied.way,
        why=FIXED_WAYS.get(applied.way, why),
        steps=(*before, *kept, step),
        delta=applied.delta,
        context=ctx,
        commit=applied.state or next_state,
    )


def run_steps(
    plan_with: Callable[[Keeping], RefreshPlan],
    keeping: Keeping,
    execute: Callable[[Step, RefreshPlan], Sequence[Mapping[str, Any]]],
) -> tuple[RefreshPlan, Sequence[Mapping[str, Any]]]:
    """Executes the steps one by one; after a look the rest is planned again with what was seen."""
    plan, done = plan_with(keeping), 0
    while True:
        step = plan.steps[done]
        done += 1
        rows = execute(step, plan)
        if step.kind == APPLY:
            return plan, rows
        if step.is_look:
            assert plan.context is not None
            (row,) = rows
            if step.kind == LOOK_AT_CHANGE:
                columns = bounded_columns(plan.context, plan.target)
                keeping = keeping.learned(bounds=read_bounds(str(row[LOOK]), columns))
            elif step.kind == LOOK_AT_STORED:
                seen = read_seen(plan.context, row)
                keeping = keeping.learned(may_be_taken=row[EXAMPLE] is not None, seen=seen)
            else:
                keyed = plan.context.layout.shape is Shape.KEYED
                bounds, nulls = read_ranges(plan.context, row) if keyed else ((), frozenset())
                keeping = keeping.learned(counts=read_counts(row), bounds=bounds, new_nulls=nulls)
            plan = plan_with(keeping)


# ---------------------------------------------------------------------- steps before the commit
def _kept_sources(ctx: ApplyContext, keeping: Keeping) -> tuple[list[Step], ApplyContext]:
    """Changes of sources that the delta reads more than once; for a small table statements cost more than reading."""
    if not keeping.looks and ctx.state.mode != LOG_MODE:
        return [], ctx
    kept: dict[RelationName, KeptChange] = {}
    for position, source in enumerate(used_twice(ctx.root, ctx.changed), 1):
        window = ctx.deltas.window(source)
        assert window is not None
        name = f"{keeping.name}_{position}"
        kept[source] = KeptChange.of(name, ctx.root, source, window, str(source) in ctx.small)
    steps = [
        keep_step(k.name, f"compute the change of {source} once and keep it", ctx.query(k.computed), k.small)
        for source, k in kept.items()
    ]
    return steps, replace(ctx, deltas=ctx.deltas.keeping(kept)) if kept else ctx


def _log_steps(ctx: ApplyContext, keeping: Keeping) -> tuple[list[Step], Applied]:
    if ctx.change is None:
        return [], only_state(ctx)
    found = logged_rows(ctx)
    steps = [
        keep_step(keeping.name, "compute the rows once and keep them", found.rows),
        Step(LOOK_AT_ROWS, "count them; literals of new keys let Delta skip files", look_at_rows(ctx, keeping.name)),
    ]
    known = keeping.known
    counts = known.counts or UNKNOWN
    if ctx.layout.shape is not Shape.KEYED:
        return steps, append_kept(ctx, found, keeping.name, counts)
    ctx = replace(ctx, bounds=known.bounds or ())
    is_new = counts.inserted == 0 or is_beyond(ctx.state.seen, ctx.bounds, known.new_nulls)
    if not is_new:
        purpose = "look up new keys among the stored rows"
        steps.append(Step(LOOK_AT_STORED, purpose, look_at_stored(ctx, keeping.name)))
    seen = ctx.state.seen if ctx.state.seen is not None else known.seen
    if seen is not None:
        ctx = replace(ctx, state=replace(ctx.state, seen=widened(seen, ctx.bounds, counts.inserted != 0)))
    return steps, append_kept(ctx, found, keeping.name, counts, not is_new and known.may_be_taken is not False)


def _merge_steps(ctx: ApplyContext, target: Target, keeping: Keeping) -> tuple[list[Step], Applied]:
    if ctx.layout.shape is Shape.KEYED and ctx.only_adds and ctx.change is not None:
        return _append_steps(ctx, keeping)
    columns = bounded_columns(ctx, target) if keeping.looks else ()
    if not columns:
        return [], apply_change(ctx)
    change = ctx.computed_change
    assert change is not None
    steps = [
        keep_step(keeping.name, "compute the change once and keep it", ctx.query(net(change))),
        Step(LOOK_AT_CHANGE, "which keys change: literals let Delta skip files", look_statement(keeping.name, columns)),
    ]
    applied = apply_change(replace(ctx, kept_as=keeping.name, bounds=keeping.known.bounds or ()))
    return steps, replace(applied, delta=change)


def _append_steps(ctx: ApplyContext, keeping: Keeping) -> tuple[list[Step], Applied]:
    found = logged_rows(ctx)
    if not keeping.looks:
        return [], append_keyed(ctx, found.plan, keeping.name, found.rows)
    steps = [
        keep_step(keeping.name, "compute the rows once and keep them", found.rows),
        Step(LOOK_AT_ROWS, "literals of new keys let Delta skip files", look_at_rows(ctx, keeping.name)),
    ]
    ctx = replace(ctx, bounds=keeping.known.bounds or ())
    return steps, append_keyed(ctx, found.plan, keeping.name)


def bounded_columns(ctx: ApplyContext, target: Target) -> tuple[Seen, ...]:
    """Columns of the storage table whose values in the change may let Delta skip files."""
    if ctx.computed_change is None or ctx.only_adds or not ctx.is_small:
        return ()
    stored = ctx.layout.stored
    partitions = tuple(c.lower() for c in target.table.partition_by if c.lower() in stored)
    identity = ctx.layout.identity or (stored if ctx.layout.shape is Shape.BAG else ())
    return prunable(ctx.computed_change, partitions, identity)


def delta_query(view: CompiledView, target: Target, pins: Mapping[RelationName, Pin], state: State) -> exp.Query | None:
    """The rows the next refresh would apply, for a dry run; None when nothing can change."""
    ctx = _apply_context(view, target, pins, state, state)
    if ctx.change is None:
        return None
    appends = ctx.layout.shape is Shape.KEYED and ctx.only_adds
    applied = logged_rows(ctx).plan if state.mode == LOG_MODE or appends else apply_change(ctx).delta
    return None if applied is None else ctx.query(applied)


def _apply_context(
    view: CompiledView,
    target: Target,
    pins: Mapping[RelationName, Pin],
    state: State,
    next_state: State,
) -> ApplyContext:
    changed = {n: p for n, p in pins.items() if p.change is not None and not p.change.maintenance_only}
    windows: dict[RelationName, Window] = {}
    for name, pin in changed.items():
        assert pin.before is not None and pin.current.version is not None
        windows[name] = Window(pin.before + 1, pin.current.version)
    insert_only = frozenset(n for n, p in changed.items() if p.change and p.change.insert_only)
    return ApplyContext(
        layout=view.layout,
        deltas=DeltaContext(windows, {n: p.current.version for n, p in pins.items()}),
        storage=target.storage,
        seq=state.seq,
        state=next_state,
        changed=frozenset(changed),
        insert_only=insert_only,
        small=frozenset(str(n) for n, p in changed.items() if _is_small(p)),
    )


def _is_small(pin: Pin) -> bool:
    """Known to be few rows; unknown counts are not small."""
    assert pin.change is not None
    counts = pin.change.counts.as_dict().values()
    if all(c is not None for c in counts):
        return sum(c or 0 for c in counts) <= BROADCAST_ROWS
    return pin.change.volume is not None and pin.change.volume <= BROADCAST_ROWS


def following_state(
    state: State | None, fingerprint: str, sources: Mapping[str, SourceState], storage_version: int, **more: Any
) -> State:
    """The state after this refresh."""
    seq = state.seq + 1 if state is not None else 1
    return State(seq, fingerprint, dict(sources), storage_version=storage_version, **more)


def log_so_far(state: State) -> dict[str, Any]:
    """What the next commit by log adds to."""
    if state.mode != LOG_MODE:
        return {}
    return {"tombstones": state.tombstones, "refreshes": state.refreshes + 1, "seen": state.seen}


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())

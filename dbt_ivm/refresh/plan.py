"""One refresh as a value: frozen steps, JSON, and explain over the same steps that run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.delta.carried import CARRIED_ROWS
from dbt_ivm.delta.context import DeltaContext, Window
from dbt_ivm.operators import Operator
from dbt_ivm.refresh.apply import ApplyContext, apply_change
from dbt_ivm.refresh.apply.log import logged_rows
from dbt_ivm.refresh.before_commit import (
    carried_sources,
    checked_references,
    edge_statuses,
    kept_sources,
    log_steps,
    merge_steps,
)
from dbt_ivm.refresh.decide import CREATE, FULL, INCREMENTAL, NONE, Decision
from dbt_ivm.refresh.foreign_keys import EdgeStatus
from dbt_ivm.refresh.keeping import APPLY, REWRITE, Keeping, Step
from dbt_ivm.refresh.rewrite import rewrite
from dbt_ivm.refresh.state import LOG_MODE, Pin, SourceState, State
from dbt_ivm.refresh.view import CompiledView
from dbt_ivm.storage.delta_format import TableOptions
from dbt_ivm.storage.layout import Shape

SCHEMA_VERSION = 1

NOTHING_KNOWN = Keeping()

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
    """``auxiliary`` are the plans of views that are refreshed before, shown with it."""

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
    edges: tuple[EdgeStatus, ...] = ()
    auxiliary: tuple[RefreshPlan, ...] = ()

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
        if self.auxiliary:
            document["auxiliary"] = [json.loads(plan.to_json()) for plan in self.auxiliary]
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
        parts += [f"auxiliary view, refreshed before: {a.storage}\n" + _indented(a.explain()) for a in self.auxiliary]
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
        notes=view.advice,
    )
    if decision.strategy == NONE:
        return base
    if decision.strategy in (CREATE, FULL):
        return _rebuild_plan(base, view, target, pins, next_state, keeping)
    assert decision.strategy == INCREMENTAL and state is not None
    ctx = _apply_context(view, target, pins, state, next_state)
    fetched, ctx = carried_sources(ctx, keeping)
    if fetched and keeping.stepwise and keeping.known.carried is None:
        return replace(base, steps=tuple(fetched), context=ctx)
    before, ctx = kept_sources(ctx, keeping)
    checks, ctx = checked_references(ctx, keeping)
    before = [*fetched, *before]
    if keeping.waits_for_references(checks):
        return replace(base, steps=(*before, *checks), context=ctx)
    kept, applied = log_steps(ctx, keeping) if next_state.mode == LOG_MODE else merge_steps(ctx, target.table, keeping)
    step = Step(APPLY, f"{applied.way}: data and state in one commit", applied.sql)
    return replace(
        base,
        way=applied.way,
        why=FIXED_WAYS.get(applied.way, why),
        steps=(*before, *checks, *kept, step),
        delta=applied.delta,
        context=ctx,
        commit=applied.state or ctx.state,
        edges=edge_statuses(ctx),
        notes=(*base.notes, *([ctx.verdict.note] if ctx.verdict.note else [])),
    )


def _rebuild_plan(
    base: RefreshPlan,
    view: CompiledView,
    target: Target,
    pins: Mapping[RelationName, Pin],
    next_state: State,
    keeping: Keeping,
) -> RefreshPlan:
    """Declared foreign keys are counted on the whole tables, then everything is written anew."""
    checks: list[Step] = []
    edges: tuple[EdgeStatus, ...] = ()
    context: ApplyContext | None = None
    if not view.is_opaque:
        unchanged = {name: replace(pin, change=None) for name, pin in pins.items()}
        context = _apply_context(view, target, unchanged, replace(next_state, dangling={}), next_state)
        checks, context = checked_references(context, keeping)
        if keeping.waits_for_references(checks):
            return replace(base, steps=tuple(checks), context=context)
        edges, next_state = edge_statuses(context), context.state
    versions = {name: pin.current.version for name, pin in pins.items()}
    sql = rewrite(view, target.storage, versions, next_state.seq, next_state.to_json(), target.table)
    step = Step(REWRITE, "replace the storage table, data and state in one commit", sql)
    return replace(base, way="rewrite", steps=(*checks, step), context=context, commit=next_state, edges=edges)


def view_edges(view: CompiledView, state: State | None) -> tuple[EdgeStatus, ...]:
    """What is known of the declared foreign keys when nothing changed."""
    if view.is_opaque or state is None:
        return ()
    ctx = _apply_context(view, Target(view.tables[0].name), {}, state, state) if view.tables else None
    return edge_statuses(ctx) if ctx is not None else ()


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
        deltas=DeltaContext(windows, {n: p.current.version for n, p in pins.items()}, insert_only=insert_only),
        storage=target.storage,
        seq=state.seq,
        state=next_state,
        changed=frozenset(changed),
        insert_only=insert_only,
        small=frozenset(str(n) for n, p in changed.items() if _is_at_most(p, BROADCAST_ROWS)),
        few=frozenset(n for n, p in changed.items() if _is_at_most(p, CARRIED_ROWS)),
        tables={t.name: t for t in view.tables},
        rules=view.rules,
        foreign_keys=view.foreign_keys,
        dangling=state.dangling,
    )


def _is_at_most(pin: Pin, most: int) -> bool:
    """Known to be few changed rows; unknown counts are not few."""
    assert pin.change is not None
    counts = pin.change.counts.as_dict().values()
    if all(c is not None for c in counts):
        return sum(c or 0 for c in counts) <= most
    return pin.change.volume is not None and pin.change.volume <= most


def following_state(
    state: State | None, fingerprint: str, sources: Mapping[str, SourceState], storage_version: int, **more: Any
) -> State:
    """The state after this refresh."""
    seq = state.seq + 1 if state is not None else 1
    return State(seq, fingerprint, dict(sources), storage_version=storage_version, **more)


def log_so_far(state: State) -> dict[str, Any]:
    """What the next commit adds to; tombstones and refreshes are counted by log only."""
    if state.mode != LOG_MODE:
        return {"seen": state.seen}
    return {"tombstones": state.tombstones, "refreshes": state.refreshes + 1, "seen": state.seen}


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())

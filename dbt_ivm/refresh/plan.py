"""One refresh as a value: frozen steps, JSON, and explain over the same steps that run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.delta.context import DeltaContext, Window
from dbt_ivm.operators import Operator
from dbt_ivm.refresh.apply import ApplyContext, apply_change
from dbt_ivm.refresh.apply.staging import Seen, Staged, keep_statement, look_statement, prunable
from dbt_ivm.refresh.decide import CREATE, FULL, INCREMENTAL, NONE, Decision
from dbt_ivm.refresh.rewrite import rewrite
from dbt_ivm.refresh.state import Pin, SourceState, State
from dbt_ivm.refresh.view import CompiledView
from dbt_ivm.storage.delta_format import TableOptions
from dbt_ivm.storage.layout import Shape

SCHEMA_VERSION = 1

#: Ways that only depend on what changed.
FIXED_WAYS = {"append": "the change only adds rows", "state only": "no commit since the last refresh moved rows"}

#: Above this many changed rows a change is not broadcast.
BROADCAST_ROWS = 200_000


@dataclass(frozen=True)
class Step:
    """One statement; ``kind`` says how to treat its result."""

    kind: str
    purpose: str
    sql: str


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
    view: Operator | None = None
    delta: Operator | None = None
    notes: tuple[str, ...] = ()
    bounded: tuple[Seen, ...] = ()

    @property
    def view_plan(self) -> str:
        return self.view.explain() if self.view is not None else ""

    @property
    def delta_plan(self) -> str:
        return self.delta.explain() if self.delta is not None else ""

    def to_json(self) -> str:
        document: dict[str, Any] = {
            **{k: v for k, v in self.__dict__.items() if k not in ("steps", "notes", "view", "delta", "bounded")},
            "view_plan": self.view_plan,
            "delta_plan": self.delta_plan,
            "steps": [s.__dict__ for s in self.steps],
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


@dataclass(frozen=True)
class Target:
    """Where the view is kept, and what its table looks like."""

    storage: RelationName
    table: TableOptions = field(default_factory=TableOptions)


def plan_refresh(
    view: CompiledView,
    target: Target,
    decision: Decision,
    pins: Mapping[RelationName, Pin],
    state: State | None,
    next_state: State,
    staged: Staged | None = None,
    why: str = "",
) -> RefreshPlan:
    """The steps of one refresh; pure: the same arguments give the same text.

    Args:
        staged: keep the change under this name and look at it before it is applied, to skip files of the storage.
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
        notes=view.notes,
    )
    if decision.strategy == NONE:
        return base
    versions = {name: pin.current.version for name, pin in pins.items()}
    if decision.strategy in (CREATE, FULL):
        sql = rewrite(view, target.storage, versions, next_state.seq, next_state.to_json(), target.table)
        purpose = "replace the storage table, data and state in one commit"
        return replace(base, way="rewrite", steps=(Step("rewrite", purpose, sql),))
    assert decision.strategy == INCREMENTAL and state is not None
    ctx = _apply_context(view, target, pins, state, next_state)
    columns = bounded_columns(ctx, target) if staged else ()
    before: tuple[Step, ...] = ()
    if staged and columns:
        assert ctx.computed_change is not None
        before = (
            Step("keep", "compute the change once and keep it", keep_statement(staged, ctx.computed_change, ctx.small)),
            Step("look", "which keys change: literals let Delta skip files", look_statement(staged, columns)),
        )
        ctx = replace(ctx, staged=staged)
    applied = apply_change(ctx)
    step = Step("apply", f"{applied.way}: data and state in one commit", applied.sql)
    # the plan of a staged change is that of the change as computed
    delta = apply_change(replace(ctx, staged=None)).delta if before else applied.delta
    return replace(
        base, way=applied.way, why=FIXED_WAYS.get(applied.way, why), steps=(*before, step), delta=delta, bounded=columns
    )


def bounded_columns(ctx: ApplyContext, target: Target) -> tuple[Seen, ...]:
    """Columns of the storage table whose values in the change may let Delta skip files."""
    is_small = {str(name) for name in ctx.changed} <= ctx.small
    if ctx.computed_change is None or ctx.only_adds or not is_small:
        return ()
    stored = ctx.layout.stored
    partitions = tuple(c.lower() for c in target.table.partition_by if c.lower() in stored)
    identity = ctx.layout.identity or (stored if ctx.layout.shape is Shape.BAG else ())
    return prunable(ctx.computed_change, partitions, identity)


def delta_query(view: CompiledView, target: Target, pins: Mapping[RelationName, Pin], state: State) -> exp.Query | None:
    """The rows the next refresh would apply, for a dry run; None when nothing can change."""
    ctx = _apply_context(view, target, pins, state, state)
    applied: Operator | None = apply_change(ctx).delta
    return None if applied is None else ctx.query(applied)


def _apply_context(
    view: CompiledView, target: Target, pins: Mapping[RelationName, Pin], state: State, next_state: State
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


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())

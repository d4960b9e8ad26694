"""The steps of a plan in order; after a look the rest is planned again with what was seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dbt_ivm.delta.carried import read_fetched
from dbt_ivm.refresh.apply import ApplyContext
from dbt_ivm.refresh.apply.log import read_counts
from dbt_ivm.refresh.apply.new_keys import read_new_keys
from dbt_ivm.refresh.apply.staging import LOOK, read_bounds
from dbt_ivm.refresh.apply.taken import EXAMPLE, read_ranges, read_stored_range
from dbt_ivm.refresh.before_commit import bounded_columns, concerned_edges, fetchable
from dbt_ivm.refresh.keeping import (
    APPLY,
    FETCH,
    LOOK_AT_CHANGE,
    LOOK_AT_REFERENCES,
    LOOK_AT_STORED,
    REWRITE,
    Keeping,
    Step,
)
from dbt_ivm.refresh.plan import RefreshPlan
from dbt_ivm.refresh.references import read_references
from dbt_ivm.storage.delta_format import TableOptions
from dbt_ivm.storage.layout import Shape


def run_steps(
    plan_with: Callable[[Keeping], RefreshPlan],
    keeping: Keeping,
    execute: Callable[[Step, RefreshPlan], Sequence[Mapping[str, Any]]],
) -> tuple[RefreshPlan, Sequence[Mapping[str, Any]]]:
    """Executes the steps one by one; after a look the rest is planned again with what was seen."""
    keeping = replace(keeping, stepwise=True)
    plan, done = plan_with(keeping), 0
    while True:
        step = plan.steps[done]
        done += 1
        rows = execute(step, plan)
        if step.kind in (APPLY, REWRITE):
            return plan, rows
        if step.is_look:
            keeping = keeping.learned(**_facts(step, plan.context, plan.target.table, rows))
            plan = plan_with(keeping)


def _facts(
    step: Step, ctx: ApplyContext | None, table: TableOptions, rows: Sequence[Mapping[str, Any]]
) -> dict[str, object]:
    """What the rows of a look say."""
    assert ctx is not None
    if step.kind == FETCH:
        return {"carried": read_fetched(fetchable(ctx), rows)}
    (row,) = rows
    if step.kind == LOOK_AT_REFERENCES:
        return {"references": read_references(ctx.deltas, concerned_edges(ctx), row)}
    if step.kind == LOOK_AT_CHANGE:
        bounds = read_bounds(str(row[LOOK]), bounded_columns(ctx, table))
        return {"bounds": bounds, "new_keys": read_new_keys(ctx, row)}
    if step.kind == LOOK_AT_STORED:
        return {"may_be_taken": row[EXAMPLE] is not None}
    bounds, nulls = read_ranges(ctx, row) if ctx.layout.shape is Shape.KEYED else ((), frozenset())
    return {"counts": read_counts(row), "bounds": bounds, "new_nulls": nulls, "seen": read_stored_range(ctx, row)}

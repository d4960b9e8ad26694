"""Stored rows instead of tables to see which rows of an outer join have a match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt_ivm.analysis.outer_join_view import OuterJoinView, outer_join_view, with_joins
from dbt_ivm.delta.context import DeltaContext
from dbt_ivm.delta.supplements import changed_inputs, reads
from dbt_ivm.operators import Field, Operator, Project, SupplementedJoins
from dbt_ivm.storage.stored_rows import StoredRows


@dataclass(frozen=True)
class Verdict:
    """``note`` says which way rows without a match are found, and why; nothing when there is no choice."""

    plan: Operator
    note: str = ""

    @property
    def is_used(self) -> bool:
        return bool(self.note) and _supplemented(self.plan)


def net_supplements(plan: Operator, stored: StoredRows, deltas: DeltaContext, otherwise: Operator) -> Operator:
    """Maintain the outer joins at the root of a keyed view from the change and the stored rows.

    Safe when every changed input that may be missing has stored marks and stored columns of the conditions that match
    it (``why_not``), and NULLs spread upwards (``why_unsupported``).  Chosen when it reads much less than the rules of
    the joins one by one (``pays``).

        Project (LeftJoin (LeftJoin (a, b), c))   →   Project (SupplementedJoins (…, stored rows))

    Args:
        otherwise: the plan that is used when this one does not pay.

    See docs/optimizations/net_supplements.md.
    """
    return judged(plan, stored, deltas, otherwise).plan


def judged(plan: Operator, stored: StoredRows, deltas: DeltaContext, otherwise: Operator) -> Verdict:
    """The plan to use, and why."""
    view = outer_join_view(plan)
    if view is None:
        return Verdict(otherwise)
    changed = changed_inputs(deltas, view)
    missing = [name for name in changed if view.outer_joins[name]]
    if not missing:
        return Verdict(otherwise)
    columns = _stored_columns(plan, view)
    why = view.unsupported or next((w for name in missing if (w := view.why_not(name, columns.__contains__))), "")
    if why:
        return Verdict(otherwise, f"net supplements not used: {why}")
    used = [c for c in view.joins.column_names if c in columns and c in _needed(view, missing)]
    fields = tuple(Field(c, columns[c], view.joins.types[c]) for c in used)
    supplemented = with_joins(plan, SupplementedJoins(view.joins, stored.rows(fields)))
    costs = [reads(change) for p in (supplemented, otherwise) if (change := deltas.delta_of(p)) is not None]
    told = f"{costs[0]} reads of tables and stored rows, {costs[1]} without"
    if not pays(*costs):
        return Verdict(otherwise, f"net supplements not used: {told}")
    return Verdict(supplemented, f"net supplements for {', '.join(missing)}: {told}")


def pays(reads_of_it: int, reads_without: int) -> bool:
    """At most two thirds: the planner does not know how large tables are, and a statement with both is longer."""
    return 3 * reads_of_it <= 2 * reads_without


def _supplemented(plan: Operator) -> bool:
    while isinstance(plan, Project):
        plan = plan.input
    return isinstance(plan, SupplementedJoins)


def _stored_columns(plan: Operator, view: OuterJoinView) -> Mapping[str, str]:
    """The joins' columns that are stored as they are, and the names they are stored under."""
    shown = {n: n for n in plan.column_names}
    while isinstance(plan, Project):
        made = {p.name: p.expression.name for p in plan.projections if p.is_reference}
        shown = {name: made[at] for name, at in shown.items() if at in made}
        plan = plan.input
    return {at: name for name, at in reversed(list(shown.items()))}


def _needed(view: OuterJoinView, missing: list[str]) -> set[str]:
    pairs = [(name, pair) for name in missing for pair in view.pairs[name]]
    marks = {view.shown_as[m] for name, pair in pairs for m in view.marks(name, pair)}
    return marks | {view.shown_as[o] for _, pair in pairs for o in view.matched(pair)}

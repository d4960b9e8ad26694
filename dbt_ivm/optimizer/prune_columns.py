"""Read only what the view uses."""

from __future__ import annotations

from dataclasses import replace

from dbt_ivm.errors import InternalError
from dbt_ivm.operators import (
    Aggregate,
    Clock,
    Existence,
    Filter,
    FullJoin,
    Generate,
    Join,
    LeftJoin,
    MovingFilter,
    OneRow,
    Operator,
    Project,
    Scan,
    UnionAll,
    Windowing,
    references,
)


def prune_columns(plan: Operator) -> Operator:
    """Remove columns nobody above needs from projections and scans.

    Always safe on a view plan: bag operators do not depend on unused columns, DISTINCT and grouping keep theirs.
    It is what makes netting effective: updates of unused columns cancel before any join.

        Project a (Scan t [a, b, c])   →   Project a (Scan t [a])
    """
    return _Pruning().prune(plan, set(plan.column_names))


def read_by_windows(plan: Operator) -> dict[int, list[set[str]]]:
    """By the id of a window: per place that uses it, the columns that are read of its input."""
    pruning = _Pruning()
    pruning.prune(plan, set(plan.column_names))
    return pruning.windows


class _Pruning:
    def __init__(self) -> None:
        self.windows: dict[int, list[set[str]]] = {}

    def prune(self, plan: Operator, needed: set[str]) -> Operator:
        if isinstance(plan, Scan):
            fields = tuple(f for f in plan.fields if f.name in needed)
            return replace(plan, fields=fields or plan.fields[:1])
        if isinstance(plan, (OneRow, Clock)):
            return plan
        if isinstance(plan, MovingFilter):
            return replace(plan, input=self.prune(plan.input, needed | set(plan.used)))
        if isinstance(plan, Filter):
            return replace(plan, input=self.prune(plan.input, needed | set(references(plan.predicate))))
        if isinstance(plan, Project):
            kept = tuple(p for p in plan.projections if p.name in needed) or plan.projections[:1]
            below = {n for p in kept for n in references(p.expression)}
            return Project(self.prune(plan.input, below), kept)
        if isinstance(plan, Join):
            wanted = needed | {n for p in plan.predicates for n in references(p)}
            return Join(tuple(self.prune(m, wanted & set(m.column_names)) for m in plan.members), plan.predicates)
        if isinstance(plan, Existence) and plan.mark and plan.mark not in needed:
            return self.prune(plan.left, needed)
        if isinstance(plan, (LeftJoin, FullJoin, Existence)):
            wanted = needed | {n for p in plan.predicates for n in references(p)}
            return plan.with_inputs(tuple(self.prune(i, wanted & set(i.column_names)) for i in plan.inputs))
        if isinstance(plan, Windowing):
            functions = tuple(f for f in plan.functions if f.name in needed)
            used = {n for f in functions for n in references(f.call)} | (needed & set(plan.input.column_names))
            if not functions:
                return self.prune(plan.input, used)
            self.windows.setdefault(id(plan), []).append(used)
            return replace(plan, input=self.prune(plan.input, used), functions=functions)
        if isinstance(plan, Generate):
            below = (needed | set(references(plan.generator))) & set(plan.input.column_names)
            return replace(plan, input=self.prune(plan.input, below))
        if isinstance(plan, Aggregate):
            measures = tuple(m for m in plan.measures if m.name in needed)
            below = {*plan.group, *(n for m in measures for n in references(m.call))}
            if not measures and plan.is_global:
                measures = plan.measures[:1]
                below |= {n for m in measures for n in references(m.call)}
            return replace(plan, input=self.prune(plan.input, below), measures=measures)
        if isinstance(plan, UnionAll):
            return self._union(plan, needed)
        raise InternalError(f"prune_columns does not know {type(plan).__name__}")

    def _union(self, plan: UnionAll, needed: set[str]) -> Operator:
        """Members match by position, so the same positions are kept in each."""
        positions = [i for i, n in enumerate(plan.column_names) if n in needed] or [0]
        members = []
        for member in plan.members:
            kept = tuple(member.column_names[i] for i in positions)
            below = self.prune(member, set(kept))
            members.append(below if below.column_names == kept else Project.keeping(below, kept))
        return UnionAll(tuple(members))

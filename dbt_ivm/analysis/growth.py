"""Whether a change can only add rows to a plan's result: then it can be appended without looking at the view."""

from __future__ import annotations

from dbt_ivm.catalog.clock import TYPES, clock_name
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.operators import (
    Clock,
    Existence,
    Filter,
    Generate,
    Join,
    Kind,
    LookupTree,
    MovingFilter,
    OneRow,
    Operator,
    PreservingJoin,
    PreservingStar,
    Project,
    Scan,
    SupplementedJoins,
    UnionAll,
)

CLOCKS = frozenset(clock_name(kind) for kind in TYPES)
MONOTONE = (Scan, OneRow, Filter, Project, Join, LookupTree, UnionAll, Generate)


def only_adds_rows(plan: Operator, insert_only: frozenset[RelationName], changed: frozenset[RelationName]) -> bool:
    """True when the plan is monotone and every changed source it reads only gained rows."""
    if isinstance(plan, PreservingJoin):
        right_adds = isinstance(plan, Existence) and plan.kind is Kind.SEMI
        right = only_adds_rows(plan.right, insert_only, changed) if right_adds else not _reads(plan.right, changed)
        return right and only_adds_rows(plan.left, insert_only, changed)
    if isinstance(plan, PreservingStar):
        stacked = plan.stacked(plan.left, [arm.right for arm in plan.arms])
        return only_adds_rows(stacked, insert_only, changed)
    if isinstance(plan, SupplementedJoins):
        return only_adds_rows(plan.joins, insert_only, changed)
    if isinstance(plan, MovingFilter):
        return not _reads(plan, changed & CLOCKS) and only_adds_rows(plan.input, insert_only, changed)
    if isinstance(plan, LookupTree):
        kept = [plan.members[e.child] for e in plan.lookups if not e.only_adds]
        if any(_reads(member, changed) for member in kept):
            return False
    if not isinstance(plan, MONOTONE):
        return not _reads(plan, changed)
    if isinstance(plan, Scan):
        return plan.source not in changed or plan.source in insert_only
    return all(only_adds_rows(i, insert_only, changed) for i in plan.inputs)


def _reads(plan: Operator, sources: frozenset[RelationName]) -> bool:
    """Whether the plan reads one of the sources."""
    if isinstance(plan, (Scan, Clock)):
        return plan.source in sources
    if isinstance(plan, MovingFilter) and any(clock_name(kind) in sources for kind in plan.clocks):
        return True
    return any(_reads(i, sources) for i in plan.inputs)

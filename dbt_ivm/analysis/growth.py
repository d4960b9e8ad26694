"""Whether a change can only add rows to a plan's result: then it can be appended without looking at the view."""

from __future__ import annotations

from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.operators import Filter, Join, LookupTree, OneRow, Operator, Project, Scan, UnionAll

MONOTONE = (Scan, OneRow, Filter, Project, Join, LookupTree, UnionAll)


def only_adds_rows(plan: Operator, insert_only: frozenset[RelationName], changed: frozenset[RelationName]) -> bool:
    """True when the plan is monotone and every changed source it reads only gained rows."""
    if not isinstance(plan, MONOTONE):
        return False
    if isinstance(plan, Scan):
        return plan.source not in changed or plan.source in insert_only
    return all(only_adds_rows(i, insert_only, changed) for i in plan.inputs)

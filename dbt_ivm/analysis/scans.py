"""Where a plan reads a stored table."""

from __future__ import annotations

from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.operators import Operator, Scan


def scans_of(plan: Operator, source: RelationName) -> tuple[Scan, ...]:
    """Every mention of the table; a self-join has several."""
    own = (plan,) if isinstance(plan, Scan) and plan.source == source else ()
    return own + tuple(scan for below in plan.inputs for scan in scans_of(below, source))


def sources_of(plan: Operator) -> tuple[RelationName, ...]:
    """Every stored table that the plan reads, each once, in order."""
    own = (plan.source,) if isinstance(plan, Scan) else ()
    return tuple(dict.fromkeys([*own, *(name for below in plan.inputs for name in sources_of(below))]))

"""Sums of floating point that a refresh computes again: their last digits depend on the order of addition.

The rule of affected keys computes rows as they were before the change, which must be what was stored.  For these it is
so up to the last digits only.  The aggregate at the root of a view is not concerned: its old rows are the stored ones.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.operators import Aggregate, Operator, Windowing
from dbt_ivm.operators.base import text
from dbt_ivm.operators.window_reach import inner_function
from dbt_ivm.types import infer, is_floating


def computed_again(rows: Operator) -> tuple[str, ...]:
    """These calls, as told to the user; ``rows`` are the stored rows of a view."""
    below = rows.inputs if isinstance(rows, Aggregate) else (rows,)
    return tuple(dict.fromkeys(found for plan in below for found in _sums(plan)))


def _sums(plan: Operator) -> list[str]:
    found = [told for below in plan.inputs for told in _sums(below)]
    calls: list[exp.Expr] = []
    if isinstance(plan, Aggregate):
        calls = [m.call for m in plan.measures]
    elif isinstance(plan, Windowing):
        calls = [inner_function(f.call) for f in plan.functions if isinstance(f.call, exp.Window)]
    types = {c.name: c.type for below in plan.inputs for c in below.columns}
    sums = [c for c in calls if isinstance(c, (exp.Sum, exp.Avg)) and is_floating(infer(c.this, types))]
    return found + [text(call) for call in sums]

"""Window functions that may take equal rows in any order take them in one order.

    row_number() OVER (PARTITION BY a ORDER BY b)   →   row_number() OVER (PARTITION BY a ORDER BY b, c, d)

SQL leaves the order of rows that ORDER BY does not tell apart to the engine, and Spark's differs from run to run.  The
rule of windows computes partitions as they were before the change, which must be what was stored.  All other columns
that the plan reads decide: rows that are equal in them too can be exchanged.  Ranks and frames of RANGE treat
equal rows alike and stay as they are (``settle_frames.py`` has seen to functions that do not).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from sqlglot import exp

from dbt_ivm.comparable import form
from dbt_ivm.operators import Operator, WindowFunction, Windowing, col
from dbt_ivm.operators.bottom_up import bottom_up
from dbt_ivm.operators.window_reach import inner_function

#: Functions whose value for a row depends on its place among equals.
BY_PLACE = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead)


def settle_ties(plan: Operator) -> Operator:
    """The plan with every tie settled; to be run when it reads only what it uses."""

    def rule(operator: Operator, shared: Set[int]) -> Operator:
        if not isinstance(operator, Windowing):
            return operator
        functions = tuple(_settled(f, operator) for f in operator.functions)
        return operator if functions == operator.functions else replace(operator, functions=functions)

    return bottom_up(plan, rule)


def _settled(function: WindowFunction, window: Windowing) -> WindowFunction:
    call = function.call
    if not isinstance(call, exp.Window) or not depends_on_place(call):
        return function
    order = call.args.get("order")
    ordered = list(order.expressions) if order is not None else []
    plain = {o.this.name for o in ordered if isinstance(o, exp.Ordered) and isinstance(o.this, exp.Column)}
    others = [c for c in window.input.columns if c.name not in plain and c.name not in window.partition]
    if not others:
        return function
    settled = call.copy()
    more = [exp.Ordered(this=form(col(c.name), c.type), nulls_first=True) for c in others]
    settled.set("order", exp.Order(expressions=[*(o.copy() for o in ordered), *more]))
    return replace(function, call=settled)


def depends_on_place(call: exp.Window) -> bool:
    """Whether the function may tell equal rows apart."""
    inner = inner_function(call)
    spec = call.args.get("spec")
    return isinstance(inner, BY_PLACE) or (spec is not None and str(spec.args.get("kind") or "").upper() == "ROWS")

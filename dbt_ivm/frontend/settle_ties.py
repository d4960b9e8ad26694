"""Window functions that may take equal rows in any order take them in one order.

    row_number() OVER (PARTITION BY a ORDER BY b)   →   row_number() OVER (PARTITION BY a ORDER BY b, c, d)

SQL leaves the order of rows that ORDER BY does not tell apart to the engine, and Spark's differs from run to run.  The
rule of windows computes partitions as they were before the change, which must be what was stored.  All other columns
that the plan reads decide: rows that are equal in them too can be exchanged.  Ranks and frames of RANGE treat
equal rows alike and stay as they are.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from sqlglot import exp

from dbt_ivm.operators import Operator, WindowFunction, Windowing, col
from dbt_ivm.operators.bottom_up import bottom_up

#: Functions whose value for a row depends on its place among equals.
BY_PLACE = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead)
#: Functions of the first row of a partition.
FIRST = (exp.FirstValue, exp.First)


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
    others = [
        c.name
        for c in window.input.columns
        if c.name not in plain and c.name not in window.partition and "map<" not in c.type and "variant" not in c.type
    ]
    if not others:
        return function
    settled = call.copy()
    more = [exp.Ordered(this=col(n), nulls_first=True) for n in others]
    settled.set("order", exp.Order(expressions=[*(o.copy() for o in ordered), *more]))
    return replace(function, call=settled)


def depends_on_place(call: exp.Window) -> bool:
    """Whether the function may tell equal rows apart."""
    inner = call.this
    while isinstance(inner, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        inner = inner.this
    spec = call.args.get("spec")
    if isinstance(inner, BY_PLACE):
        return True
    if spec is None:
        return isinstance(inner, FIRST)
    return str(spec.args.get("kind") or "").upper() == "ROWS"

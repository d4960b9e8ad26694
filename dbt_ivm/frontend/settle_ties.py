"""Window functions that may take equal rows in any order take them in one order.

    row_number() OVER (PARTITION BY a ORDER BY b)   →   row_number() OVER (PARTITION BY a ORDER BY b, c, d)

SQL leaves the order of rows that ORDER BY does not tell apart to the engine, and Spark's differs from run to run.  The
rule of windows computes partitions as they were before the change, which must be what was stored.  All other columns
that the plan reads decide: rows that are equal in them too can be exchanged.  Ranks and frames of RANGE treat
equal rows alike and stay as they are (``settle_frames.py`` has seen to functions that do not).

Where several places of a query mention one window, each may read other columns of it.  They must mean the same row by
the same number, so there all columns that some place reads decide (``settle_shared_ties``):

    WITH r AS (SELECT x, a, b, row_number() OVER (ORDER BY x) AS n FROM t)      ORDER BY x, a, b, also in p and q
    SELECT p.a, q.b FROM r p JOIN r q ON p.n = q.n
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from sqlglot import exp

from dbt_ivm.comparable import form
from dbt_ivm.operators import Operator, WindowFunction, Windowing, col
from dbt_ivm.operators.bottom_up import bottom_up
from dbt_ivm.operators.window_reach import inner_function
from dbt_ivm.optimizer.prune_columns import read_by_windows

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


def settle_shared_ties(plan: Operator) -> Operator:
    """The plan with ties settled where several places mention the window; to be run before they are told apart."""
    read = read_by_windows(plan)
    done: dict[int, Operator] = {}

    def visit(operator: Operator) -> Operator:
        if id(operator) not in done:
            inputs = tuple(visit(i) for i in operator.inputs)
            same = all(new is old for new, old in zip(inputs, operator.inputs, strict=True))
            rebuilt = operator if same else operator.with_inputs(inputs)
            places = read.get(id(operator), [])
            if isinstance(rebuilt, Windowing) and len(places) > 1:
                functions = tuple(_settled(f, rebuilt, set().union(*places)) for f in rebuilt.functions)
                rebuilt = rebuilt if functions == rebuilt.functions else replace(rebuilt, functions=functions)
            done[id(operator)] = rebuilt
        return done[id(operator)]

    return visit(plan)


def _settled(function: WindowFunction, window: Windowing, among: Set[str] | None = None) -> WindowFunction:
    """``among``: the columns that decide; None for all."""
    call = function.call
    if not isinstance(call, exp.Window) or not depends_on_place(call):
        return function
    order = call.args.get("order")
    ordered = list(order.expressions) if order is not None else []
    plain = {o.this.name for o in ordered if isinstance(o, exp.Ordered) and isinstance(o.this, exp.Column)}
    known = [o.this if isinstance(o, exp.Ordered) else o for o in ordered]
    others = [
        c
        for c in window.input.columns
        if c.name not in plain
        and c.name not in window.partition
        and (among is None or c.name in among)
        and form(col(c.name), c.type) not in known
    ]
    if not others:
        return function
    settled = call.copy()
    more = [exp.Ordered(this=form(col(c.name), c.type), nulls_first=True) for c in others]
    settled.set("order", exp.Order(expressions=[*(o.copy() for o in ordered), *more]))
    return replace(function, call=settled)


def tells_equals_apart(plan: Operator) -> bool:
    """Whether some window of the plan depends on the order of rows that its ORDER BY leaves equal."""
    here = isinstance(plan, Windowing) and any(depends_on_place(f.call) for f in plan.functions)
    return here or any(tells_equals_apart(below) for below in plan.inputs)


def depends_on_place(call: exp.Expr) -> bool:
    """Whether the function may tell equal rows apart."""
    inner = inner_function(call)
    spec = call.args.get("spec")
    return isinstance(inner, BY_PLACE) or (spec is not None and str(spec.args.get("kind") or "").upper() == "ROWS")

"""Window functions that pick or list rows of their frame, over frames whose rows have a place.

A frame of RANGE takes the rows that the order leaves equal to the current one (its peers) as a whole, in no order, so
which of them is the last one is up to the engine.  Over ROWS ``settle_ties`` puts them in order; what all peers see is
then what the last of them sees, or the first where the frame ends with the partition:

    last_value(x) OVER (PARTITION BY p ORDER BY k)
      →  v = last_value(x) OVER (PARTITION BY p ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
         last_value(v) OVER (PARTITION BY p, k ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dbt_ivm.frontend.functions import (
    ANY_VALUE,
    BESIDE_EXTREMUM,
    LISTED,
    ORDER_DEPENDENT_NAMES,
)
from dbt_ivm.operators.window_reach import CURRENT, UNBOUNDED, inner_function
from dbt_ivm.types import function_names

#: Functions whose value depends on the order of the rows in the frame.
BY_ORDER = (*ANY_VALUE, *LISTED, *BESIDE_EXTREMUM, exp.NthValue)
#: Of these, the value of the first or last row, be it NULL.
FIRST, LAST = (exp.First, exp.FirstValue, exp.AnyValue), (exp.Last, exp.LastValue)

#: A bound of a frame, and on which side of the row it is.
Bound = tuple[str, str]
START, END = (UNBOUNDED, "PRECEDING"), (UNBOUNDED, "FOLLOWING")
HERE = (CURRENT, "")


#: Functions that choose among the values of a frame by the order in which they come.
UNSETTLED = (exp.Mode, exp.GroupConcat)


@dataclass(frozen=True)
class Settled:
    """``call`` over ROWS; ``pick`` gives all peers its value at one of them, when it is not the same already."""

    call: exp.Window
    pick: type[exp.FirstValue] | type[exp.LastValue] | None = None

    def for_peers(self, column: exp.Expr) -> exp.Window:
        """The value that all peers have, from the column with the call's values."""
        assert self.pick is not None
        order = self.call.args["order"]
        return _over_rows(self.call, START, END, self.pick(this=column), [o.this.copy() for o in order.expressions])


def settle_frame(call: exp.Window) -> Settled | None:
    """The call as it is, unless its value depends on the order in which peers are taken; None: nothing settles it."""
    function = inner_function(call)
    if isinstance(function, UNSETTLED) or function_names(function) & ORDER_DEPENDENT_NAMES:
        return None
    if not isinstance(function, BY_ORDER):
        return Settled(call)
    spec, order = call.args.get("spec"), call.args.get("order")
    kind = "RANGE" if spec is None else str(spec.args.get("kind") or "").upper()
    if kind == "ROWS":
        return Settled(call)
    start, end = (START, HERE if order is not None else END) if spec is None else _bounds(spec)
    if kind != "RANGE" or not {start, end} <= {START, HERE, END}:
        return None
    if order is None or (start, end) == (START, END):
        return Settled(_over_rows(call, START, END))
    if (start, end) == (HERE, HERE):
        return Settled(_over_rows(call, START, END, None, [o.this.copy() for o in order.expressions]))
    if (start, end) == (HERE, END) and isinstance(function, (exp.ArrayAgg, exp.NthValue)):
        return None  # the first of equal rows sees more than the second, and nothing tells which is the first
    return Settled(_over_rows(call, start, end), _pick(call, start, end))


def _pick(call: exp.Window, start: Bound, end: Bound) -> type[exp.FirstValue] | type[exp.LastValue] | None:
    """Which of the peers sees what all of them do; None where every row of the partition sees the same."""
    if (start == START and isinstance(call.this, FIRST)) or (end == END and isinstance(call.this, LAST)):
        return None
    return exp.LastValue if end == HERE else exp.FirstValue


def _bounds(spec: exp.Expr) -> tuple[Bound, Bound]:
    found = []
    for bound in ("start", "end"):
        given = spec.args.get(bound)
        text = str(given if isinstance(given, str) else "" if given is not None else CURRENT).upper()
        found.append((text, "" if text == CURRENT else str(spec.args.get(f"{bound}_side") or "").upper()))
    return found[0], found[1]


def _over_rows(
    call: exp.Window,
    start: Bound,
    end: Bound,
    function: exp.Expr | None = None,
    peers: list[exp.Expr] | None = None,
) -> exp.Window:
    """The call, or another function, over rows from ``start`` to ``end``; ``peers`` join the partition."""
    new = call.copy()
    if function is not None:
        new.set("this", function)
    if peers:
        new.set("partition_by", [*(new.args.get("partition_by") or ()), *peers])
    sides = {"start": start[0], "start_side": start[1] or None, "end": end[0], "end_side": end[1] or None}
    new.set("spec", exp.WindowSpec(kind="ROWS", **sides))
    return new

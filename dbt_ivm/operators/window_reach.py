"""Which rows of its partition a window function looks at: those up to the current row, from it on, or all.

    BACK          row_number, rank, dense_rank; lag; aggregates over frames that end at or before CURRENT ROW
    AHEAD         lead; aggregates over frames that begin at or after CURRENT ROW
    EVERYWHERE    no order; ntile, percent_rank, cume_dist; all other frames

Peers of the current row are on both sides.
"""

from __future__ import annotations

from enum import Enum

from sqlglot import exp

#: Functions without a frame that count the rows before the current one.
COUNTING = (exp.RowNumber, exp.Rank, exp.DenseRank)
#: Functions without a frame that need to know how many rows there are.
SHARING = (exp.Ntile, exp.PercentRank, exp.CumeDist)
#: Wrappers around the function itself.
WRAPPERS = (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)

CURRENT, UNBOUNDED = "CURRENT ROW", "UNBOUNDED"


class Looks(Enum):
    BACK = "back"
    AHEAD = "ahead"
    EVERYWHERE = "everywhere"


def looks(call: exp.Expr) -> Looks:
    """Where the function of an OVER clause looks.

    >>> from sqlglot import parse_one
    >>> def of(text): return looks(parse_one(text, read="spark")).value
    >>> of("rank() over (order by a)"), of("sum(x) over (order by a)"), of("sum(x) over (partition by a)")
    ('back', 'back', 'everywhere')
    >>> of("max(x) over (order by a rows between 2 preceding and 1 preceding)"), of("lag(x, -1) over (order by a)")
    ('back', 'ahead')
    >>> of("sum(x) over (order by a rows 2 preceding)"), of("sum(x) over (order by a range current row)")
    ('back', 'back')
    >>> of("max(x) over (order by a rows between 0 following and 1 following)")
    'ahead'
    >>> of("max(x) over (order by a rows between 1 preceding and 1 following)"), of("ntile(4) over (order by a)")
    ('everywhere', 'everywhere')
    """
    order = call.args.get("order") if isinstance(call, exp.Window) else None
    if order is None:
        return Looks.EVERYWHERE
    function = inner_function(call)
    if isinstance(function, COUNTING):
        return Looks.BACK
    if isinstance(function, SHARING):
        return Looks.EVERYWHERE
    if isinstance(function, (exp.Lag, exp.Lead)):
        return _shifted(function)
    return _framed(call.args.get("spec"))


def inner_function(call: exp.Expr) -> exp.Expr:
    """The function itself, without FILTER and the treatment of NULL."""
    function: exp.Expr = call.this
    while isinstance(function, WRAPPERS):
        function = function.this
    return function


def _shifted(function: exp.Lag | exp.Lead) -> Looks:
    offset = function.args.get("offset")
    is_negative = isinstance(offset, exp.Neg)
    number = offset.this if isinstance(offset, exp.Neg) else offset
    if number is not None and not _is_count(number):
        return Looks.EVERYWHERE
    return Looks.BACK if isinstance(function, exp.Lag) != is_negative else Looks.AHEAD


def _framed(spec: exp.Expr | None) -> Looks:
    if spec is None:  # RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        return Looks.BACK
    if _text(spec.args.get("kind")) not in ("ROWS", "RANGE"):
        return Looks.EVERYWHERE
    if _is_from_here(spec.args.get("end") or CURRENT, _text(spec.args.get("end_side")), "PRECEDING"):
        return Looks.BACK
    if _is_from_here(spec.args.get("start"), _text(spec.args.get("start_side")), "FOLLOWING"):
        return Looks.AHEAD
    return Looks.EVERYWHERE


def _is_from_here(bound: object, side: str, wanted: str) -> bool:
    """Whether the bound is the current row, or some rows or values on the wanted side of it."""
    if isinstance(bound, str):
        return _text(bound) == CURRENT
    if isinstance(bound, exp.Interval):
        bound = bound.this
    return side == wanted and _is_count(bound)


def _is_count(number: object) -> bool:
    """A number that is not negative; anything else may turn the direction round."""
    return isinstance(number, exp.Literal) and number.name.replace(".", "", 1).isdigit()


def _text(part: object) -> str:
    return str(part or "").upper()

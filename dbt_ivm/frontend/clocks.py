"""Functions that ask for the date or the time."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import nodes
from dbt_ivm.types import function_names

DATE_NAMES = frozenset(("current_date", "curdate"))
TIME_NAMES = frozenset(("current_timestamp", "now", "localtimestamp", "unix_timestamp"))


def clock_of(node: exp.Expr) -> str:
    """The kind of clock that a call asks for, or "".

    Calls with an argument are none: unix_timestamp(x) is a function of x.
    """
    if isinstance(node, (exp.CurrentDate, exp.CurrentTimestamp)):
        return "" if node.this else "date" if isinstance(node, exp.CurrentDate) else "timestamp"
    called = function_names(node)
    if not called & (DATE_NAMES | TIME_NAMES) or any(True for _ in node.iter_expressions()):
        return ""
    return "date" if called & DATE_NAMES else "timestamp"


def clock_value(node: exp.Expr, shown: exp.Expr) -> exp.Expr:
    """What the call returns, when the clock shows this."""
    called = function_names(node)
    if "unix_timestamp" in called:
        return exp.Anonymous(this="UNIX_SECONDS", expressions=[shown])
    if "localtimestamp" in called:
        return nodes.cast(shown, "timestamp_ntz")
    return shown


def asks_the_clock(expression: exp.Expr) -> bool:
    return any(clock_of(node) for node in expression.walk())

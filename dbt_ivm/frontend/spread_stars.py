"""A star among the arguments of a function is the columns of FROM; only COUNT(*) means rows.

hash(*), count(DISTINCT t.*), struct(*)   →   hash(t.a, t.b), count(DISTINCT t.a, t.b), named_struct('a', t.a, …)
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.parse import line_of


def spread_stars(expression: exp.Expr, columns: Callable[[str], list[exp.Column] | None]) -> exp.Expr:
    """``columns``: those of one table, or of all for ``""``; None where the scope cannot tell."""
    if not _calls(expression):
        return expression
    expression = expression.copy()
    for call in _calls(expression):
        new = _spread(call, columns)
        if call is expression:
            expression = new
        elif new is not call:
            call.replace(new)
    return expression


def _calls(expression: exp.Expr) -> list[exp.Expr]:
    """Calls with a star among their arguments; those of subqueries are resolved with these."""
    return [
        node
        for node in expression.walk(prune=lambda n: isinstance(n, exp.Query))
        if not isinstance(node, (exp.Query, exp.Column)) and any(map(_is_spread, node.iter_expressions()))
    ]


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def _is_spread(argument: exp.Expr) -> bool:
    call = argument.parent
    counts_rows = isinstance(call, exp.Count) and isinstance(argument, exp.Star) and not call.expressions
    return _is_star(argument) and not counts_rows


def _spread(call: exp.Expr, columns: Callable[[str], list[exp.Column] | None]) -> exp.Expr:
    has_more = "expressions" in call.arg_types
    given = [call.this] if isinstance(call.this, exp.Expr) and "this" in call.arg_types else []
    parts: list[exp.Expr] = []
    for part in [*given, *call.expressions]:
        star = part.this if isinstance(part, exp.Column) else part
        found = columns(part.table if isinstance(part, exp.Column) else "") if _is_star(part) else [part]
        if found is None or not has_more or (isinstance(star, exp.Star) and any(star.args.values())):
            raise Refusal("unparsable", call.sql(dialect="spark")[:60], line_of(call))
        parts += found
    if isinstance(call, exp.Struct):
        if not all(isinstance(p, exp.Column) for p in parts):
            raise Refusal("unparsable", call.sql(dialect="spark")[:60], line_of(call))
        named = [value for p in parts for value in (exp.Literal.string(p.name), p)]
        return exp.Anonymous(this="NAMED_STRUCT", expressions=named)
    if given:
        call.set("this", parts[0])
    call.set("expressions", parts[len(given) :])
    return call

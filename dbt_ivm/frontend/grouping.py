"""GROUPING SETS, ROLLUP and CUBE as a list of sets of expressions."""

from __future__ import annotations

from itertools import combinations, product

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.parse import line_of

Set = tuple[exp.Expr, ...]


def grouping_sets(group: exp.Group) -> list[Set] | None:
    """Every grouping set of a GROUP BY; None when there is one only, of all its expressions.

    Elements beside each other multiply: GROUP BY a, ROLLUP (b) is GROUPING SETS ((a, b), (a)).
    """
    if group.args.get("totals"):
        raise Refusal("grouping_sets", "WITH TOTALS", line_of(group))
    elements = list(group.expressions)
    trailing = [e for kind in ("rollup", "cube", "grouping_sets") for e in group.args.get(kind) or ()]
    for last in trailing:
        if not last.expressions:  # GROUP BY a, b WITH ROLLUP
            elements = [type(last)(expressions=elements)]
        else:
            elements.append(last)
    if not any(isinstance(e, (exp.Rollup, exp.Cube, exp.GroupingSets)) for e in elements):
        return None
    found: list[Set] = []
    for combination in product(*(_sets(e) for e in elements)):
        found.append(tuple(dict.fromkeys(e for part in combination for e in part)))
    return found


def group_elements(group: exp.Group) -> list[exp.Expr]:
    """The expressions that the rows are grouped by, of all grouping sets; ``(a)`` is ``a``."""
    sets = grouping_sets(group)
    return (
        [_unwrapped(e) for e in group.expressions] if sets is None else list(dict.fromkeys(e for s in sets for e in s))
    )


def _sets(element: exp.Expr) -> list[Set]:
    if isinstance(element, exp.Rollup):
        parts = [_columns(e) for e in element.expressions]
        return [sum(parts[:n], ()) for n in range(len(parts), -1, -1)]
    if isinstance(element, exp.Cube):
        parts = [_columns(e) for e in element.expressions]
        return [sum(chosen, ()) for n in range(len(parts), -1, -1) for chosen in combinations(parts, n)]
    if isinstance(element, exp.GroupingSets):
        return [s for e in element.expressions for s in _sets(e)]
    return [_columns(element)]


def _columns(element: exp.Expr) -> Set:
    element = _unwrapped(element)
    return tuple(element.expressions) if isinstance(element, exp.Tuple) else (element,)


def _unwrapped(element: exp.Expr) -> exp.Expr:
    while isinstance(element, exp.Paren):
        element = element.this
    return element

"""Maps and variants are compared by a form that depends on their type (comparable.py), which must be known.

Other values of unknown type are compared as SQL does it; only of maps and variants SQL has no idea.  Columns that are
unknown and accepted have none inside, so an expression can only have one from a column that is known to, or from a
function that makes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.function_types import MAKES_MAPS
from dbt_ivm.nested_types import holds_map, is_cut
from dbt_ivm.operators import Aggregate, Generate, Operator, Project, Scan, UnionAll, Windowing
from dbt_ivm.operators.base import text
from dbt_ivm.optimizer.prune_columns import prune_columns
from dbt_ivm.types import function_names


def refuse_unknown_maps(plan: Operator) -> None:
    """Refuse a view with a column that may have maps or variants inside without that its type tells which."""
    for operator in _all(prune_columns(plan)):
        for made in _made(operator):
            raise Refusal("unknown_map", text(made)[:60] if isinstance(made, exp.Expr) else made, _line(made))


def _all(operator: Operator) -> Iterator[Operator]:
    yield operator
    for below in operator.inputs:
        yield from _all(below)


def _made(operator: Operator) -> Iterator[exp.Expr | str]:
    """The columns at fault: the expressions that make them, or their names."""
    if isinstance(operator, Scan):
        yield from (f"{operator.source}.{f.column} {f.type}" for f in operator.fields if is_cut(f.type))
    elif isinstance(operator, UnionAll):
        for position, column in enumerate(operator.columns):
            kinds = [m.columns[position].type for m in operator.members]
            if not column.type and any(holds_map(k) for k in kinds):
                yield f"UNION of {' and '.join(k or 'unknown' for k in kinds)}"
    elif isinstance(operator, (Project, Aggregate, Windowing, Generate)):
        (rows,) = operator.inputs
        yield from (e for e, kind in _expressions(operator) if not kind and _may_hold_map(e, rows.types))


def _expressions(operator: Project | Aggregate | Windowing | Generate) -> Iterator[tuple[exp.Expr, str]]:
    if isinstance(operator, Project):
        return zip((p.expression for p in operator.projections), (c.type for c in operator.columns), strict=True)
    if isinstance(operator, Aggregate):
        return ((m.call, m.type) for m in operator.measures)
    if isinstance(operator, Windowing):
        return ((f.call, f.type) for f in operator.functions)
    return ((operator.generator, c.type) for c in operator.made)


def _may_hold_map(expression: exp.Expr, types: Mapping[str, str]) -> bool:
    for node in expression.walk():
        if isinstance(node, exp.Column) and holds_map(types.get(node.name, "")):
            return True
        if isinstance(node, (exp.Map, exp.VarMap, exp.ParseJSON)) or function_names(node) & MAKES_MAPS:
            return True
    return False


def _line(made: exp.Expr | str) -> int | None:
    return line_of(made) if isinstance(made, exp.Expr) else None

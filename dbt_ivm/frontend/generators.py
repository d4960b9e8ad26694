"""Functions that make rows of each row: explode and its kin, stack, json_tuple; LATERAL VIEW, LATERAL and SELECT.

stack(n, …) numbers n copies of the row and picks the values of each by its number, as UNPIVOT does: the number tells
the rows apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dbt_ivm import nodes
from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.name_generators import usual_columns
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.frontend.scope import Scope
from dbt_ivm.nested_types import element_type, map_types
from dbt_ivm.operators import Column, Generate, Operator, Project, Projection, col
from dbt_ivm.types import function_names, infer

#: Generators: how many leading columns are positions, and whether rows without elements are kept.
GENERATORS: dict[type[exp.Expr], tuple[bool, bool]] = {
    exp.Explode: (False, False),
    exp.ExplodeOuter: (False, True),
    exp.Posexplode: (True, False),
    exp.PosexplodeOuter: (True, True),
    exp.Inline: (False, False),
}
#: Generators that the parser takes for ordinary functions.
NAMED = frozenset(("stack", "json_tuple", "inline_outer"))


def is_generator(node: exp.Expr) -> bool:
    return isinstance(node, tuple(GENERATORS)) or bool(function_names(node) & NAMED)


def lateral_view(scope: Scope, lateral: exp.Lateral, outer: bool = False) -> Operator:
    alias = lateral.args["alias"]
    names = [c.name for c in alias.columns]
    return generated(scope, lateral.this, alias.name, names, outer or bool(lateral.args.get("outer")))


def generated(scope: Scope, generator: exp.Expr, alias: str, names: list[str], outer: bool = False) -> Operator:
    """The rows that a generator makes of each row; its columns are known as ``alias.name``."""
    called = function_names(generator) & NAMED
    names = names or _usual_names(scope, generator)
    if "stack" in called:
        return _stack(scope, generator, alias, names)
    if called:
        arguments = [scope.resolve(e) for e in generator.expressions]
        call: exp.Expr = exp.Anonymous(this=next(iter(called)).upper(), expressions=arguments)
        keeps, with_position = "inline_outer" in called, False
        kinds = ["string"] * len(names) if "json_tuple" in called else []
        if keeps:
            call = exp.Inline(this=arguments[0])
    elif type(generator) in GENERATORS:
        with_position, keeps = GENERATORS[type(generator)]
        argument = scope.resolve(generator.this)
        call = type(generator)(this=argument)
        if isinstance(call, (exp.ExplodeOuter, exp.PosexplodeOuter)):
            call = (exp.Posexplode if with_position else exp.Explode)(this=argument)
        kind = infer(argument, scope.plan.types)
        elements = list(map_types(kind) or [element_type(kind)])
        kinds = (["int"] if with_position else []) + (elements if not isinstance(generator, exp.Inline) else [])
    else:
        raise Refusal("lateral", scope.text(generator), line_of(generator) or scope.line)
    kinds += [""] * (len(names) - len(kinds))
    made = [Column(scope.lowering.fresh(f"{alias}_{n}"), k) for n, k in zip(names, kinds, strict=False)]
    for name, column in zip(names, made, strict=True):
        scope.columns[(alias, name)] = column.name
    return Generate(scope.plan, call, tuple(made), outer or keeps, made[0].name if with_position else "")


def _usual_names(scope: Scope, generator: exp.Expr) -> list[str]:
    """What Spark calls the columns when the query does not."""
    resolved = generator.copy()
    for argument in list(resolved.iter_expressions()):
        argument.replace(scope.resolve(argument))
    names = [name for name, _ in usual_columns(resolved, scope.plan.types)]
    if not names:
        detail = f"{scope.text(generator)} without names of its columns"
        raise Refusal("lateral", detail, line_of(generator) or scope.line)
    return names


def _stacked(scope: Scope, generator: exp.Expr) -> tuple[int, list[exp.Expr]]:
    rows, *values = generator.iter_expressions()
    if not isinstance(rows, exp.Literal) or not rows.name.isdigit() or rows.name == "0" or not values:
        raise Refusal("lateral", scope.text(generator), line_of(generator) or scope.line)
    return int(rows.name), values


def _stack(scope: Scope, generator: exp.Expr, alias: str, names: list[str]) -> Operator:
    rows, given = _stacked(scope, generator)
    width = -(-len(given) // rows)
    if len(names) != width:
        raise Refusal("lateral", scope.text(generator), line_of(generator) or scope.line)
    values = [scope.resolve(v) for v in given] + [exp.Null()] * (rows * width - len(given))
    plan, place = numbered(scope, rows)
    shown = [Projection(n, col(n)) for n in plan.column_names]
    for position, name in enumerate(names):
        column = scope.lowering.fresh(f"{alias}_{name}")
        shown.append(Projection(column, chosen(place, values[position::width])))
        scope.columns[(alias, name)] = column
    return Project(plan, tuple(shown))


def numbered(scope: Scope, rows: int) -> tuple[Operator, str]:
    """Each row as many times, and the column with their numbers from 1 on."""
    place = scope.lowering.fresh("place")
    one, last = (nodes.cast(exp.Literal.number(n), "int") for n in (1, rows))
    series = exp.Explode(this=exp.Anonymous(this="SEQUENCE", expressions=[one, last]))
    return Generate(scope.plan, series, (Column(place, "int"),), position=place), place


def chosen(place: str, values: Sequence[exp.Expr], kind: str = "") -> exp.Expr:
    """The value of the row's number, cast to the type if one is given."""
    branches = [
        exp.If(this=exp.EQ(this=col(place), expression=exp.Literal.number(number)), true=value)
        for number, value in enumerate(values, 1)
    ]
    picked = exp.Case(ifs=branches)
    return nodes.cast(picked, kind) if kind else picked

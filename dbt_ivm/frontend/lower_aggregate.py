"""GROUP BY: keys projected below, aggregate calls collected as measures, the select list rewritten over both."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.functions import (
    ORDER_DEPENDENT,
    ORDER_DEPENDENT_NAMES,
    RECOMPUTABLE,
    RECOMPUTABLE_NAMES,
    is_aggregate,
)
from dbt_ivm.frontend.lower import Lowering
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.operators import Aggregate, Measure, Operator, Project, Projection, col
from dbt_ivm.types import decimal_of, infer, is_floating, is_integral

Outputs = list[tuple[str, exp.Expr]]


def has_aggregates(expressions: list[exp.Expr]) -> bool:
    return any(is_aggregate(node) for e in expressions for node in e.walk())


def lower_aggregate(
    lowering: Lowering,
    plan: Operator,
    keys: list[exp.Expr],
    outputs: Outputs,
    having: exp.Expr | None,
    grouped: bool,
) -> tuple[Operator, Outputs, exp.Expr | None]:
    """The aggregate, and the select list and HAVING as expressions over its columns."""
    keys = [k for i, k in enumerate(keys) if k not in keys[:i]]
    names = [k.name if isinstance(k, exp.Column) else lowering.fresh("group_key") for k in keys]
    computed = [(n, k) for n, k in zip(names, keys, strict=True) if not isinstance(k, exp.Column)]
    if computed:
        kept = tuple(Projection(n, col(n)) for n in plan.column_names)
        plan = Project(plan, kept + tuple(Projection(n, k) for n, k in computed))

    measures: list[Measure] = []

    def rewrite(node: exp.Expr) -> exp.Expr:
        if node in keys:
            return col(names[keys.index(node)])
        if isinstance(node, exp.Filter) or is_aggregate(node):
            return col(_measure(lowering, measures, _plain_call(node), plan.types))
        for part in list(node.iter_expressions()):
            changed = rewrite(part)
            if changed is not part:
                part.replace(changed)
        return node

    rewritten = [(name, rewrite(e.copy())) for name, e in outputs]
    condition = rewrite(having.copy()) if having is not None else None
    aggregate = Aggregate(plan, tuple(names), tuple(measures), is_global=not grouped)
    for expression in [e for _, e in rewritten] + ([condition] if condition is not None else []):
        _refuse_ungrouped(expression, aggregate)
    return aggregate, rewritten, condition


def _measure(lowering: Lowering, measures: list[Measure], call: exp.Expr, types: dict[str, str]) -> str:
    for known in measures:
        if known.call == call:
            return known.name
    name = lowering.fresh(call.key)
    measures.append(Measure(name, call, result_type(call, types)))
    return name


def _plain_call(node: exp.Expr) -> exp.Expr:
    """A supported call; FILTER becomes a CASE inside the argument."""
    condition = None
    if isinstance(node, exp.Filter):
        condition, node = node.expression.this, node.this
    _refuse_call(node)
    if isinstance(node, exp.Count):
        return _plain_count(node, condition)
    if condition is None:
        return node.copy()
    if node.expressions or isinstance(node, exp.Anonymous) or isinstance(node.this, exp.Distinct):
        raise Refusal("aggregate_function", f"FILTER on {node.sql(dialect='spark')}", line_of(node))
    filtered = node.copy()
    filtered.set("this", _when(condition, node.this))
    return filtered


def _plain_count(node: exp.Count, condition: exp.Expr | None) -> exp.Expr:
    argument = node.this
    if isinstance(argument, exp.Distinct):
        if condition is None:
            return node.copy()
        parts = [_when(condition, e) for e in argument.expressions]
        return exp.Count(this=exp.Distinct(expressions=parts))
    arguments = [argument, *node.expressions] if argument is not None else []
    constant = len(arguments) == 1 and isinstance(arguments[0], (exp.Star, exp.Literal))
    if constant:
        return exp.Count(this=exp.Star() if condition is None else _when(condition, exp.Literal.number(1)))
    if len(arguments) > 1:
        present = exp.and_(*[exp.Not(this=exp.Is(this=a.copy(), expression=exp.Null())) for a in arguments])
        arguments = [_when(present, exp.Literal.number(1))]
    return exp.Count(this=arguments[0].copy() if condition is None else _when(condition, arguments[0]))


def _when(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


def _refuse_call(node: exp.Expr) -> None:
    detail, line = node.sql(dialect="spark")[:60], line_of(node)
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    inside = [n for n in node.walk() if n is not node and is_aggregate(n)]
    if inside:
        raise Refusal("aggregate_function", detail, line)
    if isinstance(node, ORDER_DEPENDENT) or name in ORDER_DEPENDENT_NAMES:
        raise Refusal("order_dependent_aggregate", detail, line)
    adjustable = isinstance(node, (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max))
    if not adjustable and not isinstance(node, RECOMPUTABLE) and name not in RECOMPUTABLE_NAMES:
        raise Refusal("aggregate_function", detail, line)


def _refuse_ungrouped(expression: exp.Expr, aggregate: Aggregate) -> None:
    for column in expression.find_all(exp.Column):
        if column.name not in aggregate.column_names:
            raise Refusal("aggregate_function", f"{expression.sql(dialect='spark')[:60]}", line_of(expression))


def result_type(call: exp.Expr, types: dict[str, str]) -> str:
    """Spark's type of an aggregate's result, or ``""``."""
    if isinstance(call, exp.Count):
        return "bigint"
    argument = infer(call.this, types) if isinstance(call.this, exp.Expr) else ""
    if isinstance(call, (exp.Min, exp.Max)):
        return argument
    decimal = decimal_of(argument)
    if isinstance(call, exp.Sum):
        if decimal:
            return f"decimal({min(decimal[0] + 10, 38)},{decimal[1]})"
        return "bigint" if is_integral(argument) else "double" if is_floating(argument) else ""
    if isinstance(call, exp.Avg):
        if decimal:
            return f"decimal({min(decimal[0] + 4, 38)},{min(decimal[1] + 4, 38)})"
        return "double" if is_integral(argument) or is_floating(argument) else ""
    return ""

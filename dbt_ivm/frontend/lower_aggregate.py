"""GROUP BY: keys projected below, aggregate calls collected as measures, the select list rewritten over both."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dbt_ivm import nodes
from dbt_ivm.comparable import form, is_comparable
from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.functions import (
    ANY_VALUE,
    BESIDE_EXTREMUM,
    LISTED,
    ORDER_DEPENDENT_NAMES,
    RECOMPUTABLE,
    RECOMPUTABLE_NAMES,
    SPELLED,
    is_aggregate,
)
from dbt_ivm.frontend.lower import Lowering
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.operators import Aggregate, Join, Measure, OneRow, Operator, Project, Projection, UnionAll, col
from dbt_ivm.types import decimal_of, function_names, infer, is_floating, is_integral, is_interval

Outputs = list[tuple[str, exp.Expr]]

#: Aggregates that are doubles whatever they are of.
DOUBLE = (
    exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Corr, exp.CovarPop, exp.CovarSamp,
)  # fmt: skip
#: Functions about grouping sets.
GROUPING = frozenset(("grouping", "grouping_id"))


NULLS = (exp.IgnoreNulls, exp.RespectNulls)


def has_aggregates(expressions: list[exp.Expr]) -> bool:
    """Whether some expression has an aggregate of its own; window functions and subqueries do not count."""
    return any(_has_aggregate(e) for e in expressions)


def _has_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        return any(_has_aggregate(part) for part in _window_parts(node))
    if is_aggregate(node) or function_names(node) & GROUPING:
        return True
    return any(_has_aggregate(part) for part in node.iter_expressions())


def _window_parts(window: exp.Window) -> list[exp.Expr]:
    """Everything inside a window function but the function itself."""
    function = window.this
    while isinstance(function, (*NULLS, exp.Filter)):
        function = function.this
    outside = [p for p in window.iter_expressions() if p is not window.this]
    around = [window.this.expression] if isinstance(window.this, exp.Filter) else []
    return [*function.iter_expressions(), *around, *outside]


def lower_aggregate(
    lowering: Lowering,
    plan: Operator,
    keys: list[exp.Expr],
    outputs: Outputs,
    having: exp.Expr | None,
    grouped: bool,
    sets: list[frozenset[int]] | None = None,
    later: frozenset[str] = frozenset(),
) -> tuple[Operator, Outputs, exp.Expr | None]:
    """The aggregate, and the select list and HAVING as expressions over its columns.

    Args:
        sets: grouping sets, as positions in ``keys``; None groups by all of them.
        later: columns that the plan gets after grouping.
    """
    plan, groups = _grouping(lowering, plan, keys, sets)
    measures: list[Measure] = []

    def rewrite(node: exp.Expr) -> exp.Expr:
        if node in groups.keys:
            return col(groups.names[groups.keys.index(node)])
        if function_names(node) & GROUPING:
            return groups.grouping(node)
        if isinstance(node, exp.Window):
            for part in _window_parts(node):
                changed = rewrite(part)
                if changed is not part:
                    part.replace(changed)
            return node
        if isinstance(node, exp.Filter) or is_aggregate(node):
            return col(_measure(lowering, measures, _plain_call(node, plan.types), plan.types))
        if isinstance(node, NULLS) and is_aggregate(node.this):
            return rewrite(node.this)
        for part in list(node.iter_expressions()):
            changed = rewrite(part)
            if changed is not part:
                part.replace(changed)
        return node

    rewritten = [(name, rewrite(e.copy())) for name, e in outputs]
    condition = rewrite(having.copy()) if having is not None else None
    aggregate = Aggregate(plan, groups.group, tuple(measures), is_global=not grouped)
    for expression in [e for _, e in rewritten] + ([condition] if condition is not None else []):
        _refuse_ungrouped(expression, aggregate, later)
    return aggregate, rewritten, condition


@dataclass(frozen=True)
class _Groups:
    """``names`` are the columns of ``keys`` in the aggregate; ``which`` tells grouping sets apart."""

    keys: list[exp.Expr]
    names: list[str]
    sets: list[frozenset[int]] | None = None
    which: str = ""

    @property
    def group(self) -> tuple[str, ...]:
        return (*self.names, self.which) if self.which else tuple(self.names)

    def grouping(self, node: exp.Expr) -> exp.Expr:
        """GROUPING(k): whether k is left out of the row's set; GROUPING_ID: the same of all keys, as bits."""
        if self.sets is None:
            raise Refusal("aggregate_function", node.sql(dialect="spark")[:60], line_of(node))
        asked = [e for e in node.iter_expressions()]
        positions = [self.keys.index(e) for e in asked if e in self.keys] if asked else list(range(len(self.keys)))
        if "grouping" in function_names(node):
            return nodes.cast(self._left_out(positions[0]), "tinyint")
        bits: exp.Expr = exp.Literal.number(0)
        for place, position in enumerate(reversed(positions)):
            weight = exp.Mul(this=self._left_out(position), expression=exp.Literal.number(2**place))
            bits = exp.Add(this=bits, expression=weight)
        return nodes.cast(exp.Paren(this=bits), "bigint")

    def _left_out(self, position: int) -> exp.Expr:
        assert self.sets is not None
        without = [exp.Literal.number(i) for i, s in enumerate(self.sets) if position not in s]
        if not without:
            return exp.Literal.number(0)
        is_left_out = exp.In(this=col(self.which), expressions=without)
        return exp.Case(ifs=[exp.If(this=is_left_out, true=exp.Literal.number(1))], default=exp.Literal.number(0))


def _grouping(
    lowering: Lowering, plan: Operator, keys: list[exp.Expr], sets: list[frozenset[int]] | None
) -> tuple[Operator, _Groups]:
    """The keys as columns.  With grouping sets each row counts once per set, with NULL for the keys it leaves out."""
    if sets is None:
        keys = [k for i, k in enumerate(keys) if k not in keys[:i]]
        names = [k.name if isinstance(k, exp.Column) else lowering.fresh("group_key") for k in keys]
        computed = [(n, k) for n, k in zip(names, keys, strict=True) if not isinstance(k, exp.Column)]
        return _with_computed(plan, computed), _Groups(keys, names)
    which = lowering.fresh("grouping_set")
    numbers: list[Operator] = [
        Project(OneRow(), (Projection(which, exp.Literal.number(i)),)) for i, _ in enumerate(sets)
    ]
    plan = Join((plan, numbers[0] if len(numbers) == 1 else UnionAll(tuple(numbers))))
    names = [lowering.fresh("group_key") for _ in keys]
    computed = []
    for position, (name, key) in enumerate(zip(names, keys, strict=True)):
        having = [exp.Literal.number(i) for i, s in enumerate(sets) if position in s]
        computed.append((name, _when(exp.In(this=col(which), expressions=having), key)))
    return _with_computed(plan, computed), _Groups(keys, names, sets, which)


def _with_computed(plan: Operator, computed: list[tuple[str, exp.Expr]]) -> Operator:
    if not computed:
        return plan
    kept = tuple(Projection(n, col(n)) for n in plan.column_names)
    return Project(plan, kept + tuple(Projection(n, k) for n, k in computed))


def _measure(lowering: Lowering, measures: list[Measure], call: exp.Expr, types: dict[str, str]) -> str:
    for known in measures:
        if known.call == call:
            return known.name
    name = lowering.fresh(call.key)
    measures.append(Measure(name, call, result_type(call, types)))
    return name


def _plain_call(node: exp.Expr, types: dict[str, str]) -> exp.Expr:
    """A supported call, with one value whatever the order of rows; FILTER becomes a CASE inside the argument."""
    call = _call_without_filter(node)
    argument = _argument(call)
    kind = infer(argument, types) if argument is not None else ""
    is_ordered = is_comparable(kind)
    if isinstance(call, ANY_VALUE):
        return exp.Min(this=call.this) if is_ordered else exp.ArgMin(this=call.this, expression=form(call.this, kind))
    if isinstance(call, LISTED) and not isinstance(argument, exp.Order):
        return exp.Anonymous(this="SORT_ARRAY", expressions=[call]) if is_ordered else _sorted_by_form(call, kind)
    if isinstance(call, exp.Mode) and argument is not None:  # of equally frequent values the smallest
        return exp.Mode(this=argument.copy(), deterministic=exp.true())
    if isinstance(call, exp.GroupConcat):
        return _settled(call)
    if isinstance(call, exp.WithinGroup) and isinstance(call.this, SPELLED):  # the parser's own spelling is another
        call.set("this", exp.Anonymous(this=call.this.sql_name(), expressions=[call.this.this]))
        return call
    if isinstance(call, BESIDE_EXTREMUM) and not call.expressions:
        other = call.expression
        known = exp.Not(this=exp.Is(this=nodes.grouped(other), expression=exp.Null()))
        value = form(call.this.copy(), kind, exact=False)
        both = exp.Anonymous(this="STRUCT", expressions=[other.copy(), value])
        return type(call)(this=call.this, expression=_when(known, both))
    return call


def _argument(call: exp.Expr) -> exp.Expr | None:
    """The first argument, DISTINCT or not."""
    argument = call.this
    if isinstance(argument, exp.Distinct) and len(argument.expressions) == 1:
        argument = argument.expressions[0]
    return argument if isinstance(argument, exp.Expr) else None


def _sorted_by_form(call: exp.Expr, kind: str) -> exp.Expr:
    """The list of values that SQL does not sort."""
    left, right = exp.to_identifier("a"), exp.to_identifier("b")
    here, there = form(left, kind), form(right, kind)
    order = exp.Case(
        ifs=[
            exp.If(this=exp.LT(this=here, expression=there), true=exp.Neg(this=exp.Literal.number(1))),
            exp.If(this=exp.GT(this=here.copy(), expression=there.copy()), true=exp.Literal.number(1)),
        ],
        default=exp.Literal.number(0),
    )
    compare = exp.Lambda(this=order, expressions=[left.copy(), right.copy()])
    return exp.Anonymous(this="ARRAY_SORT", expressions=[call, compare])


def _settled(call: exp.GroupConcat) -> exp.Expr:
    """LISTAGG whose order tells all different values apart."""
    listed = call.this.this if isinstance(call.this, exp.Order) else call.this
    value = listed.expressions[0] if isinstance(listed, exp.Distinct) else listed
    ordered = list(call.this.expressions) if isinstance(call.this, exp.Order) else []
    if not any(o.this == value for o in ordered):
        ordered.append(exp.Ordered(this=value.copy(), nulls_first=True))
    separator = call.args.get("separator") or exp.Literal.string("")
    return exp.GroupConcat(this=exp.Order(this=listed, expressions=ordered), separator=separator)


def _call_without_filter(node: exp.Expr) -> exp.Expr:
    condition = None
    if isinstance(node, exp.Filter):
        condition, node = node.expression.this, node.this
    while isinstance(node, NULLS):
        node = node.this
    _refuse_call(node)
    if isinstance(node, exp.Count):
        return _plain_count(node, condition)
    if condition is None:
        return node.copy()
    filtered = node.copy()
    is_ordered = isinstance(filtered, exp.GroupConcat) and isinstance(filtered.this, exp.Order)
    call = filtered.this if is_ordered else filtered
    if isinstance(filtered, exp.WithinGroup):
        for ordered in filtered.expression.expressions:
            ordered.set("this", _when(condition, ordered.this))
        return filtered
    if isinstance(call, exp.Anonymous) and call.expressions:  # all of them leave out rows whose first argument is NULL
        first, *more = call.expressions
        call.set("expressions", [_when(condition, first), *more])
        return filtered
    if (call.expressions and not is_ordered) or isinstance(call.this, exp.Distinct):
        raise Refusal("aggregate_function", f"FILTER on {node.sql(dialect='spark')}", line_of(node))
    # a NULL beside the largest value is a value, a NULL to compare is none
    place = "expression" if isinstance(call, BESIDE_EXTREMUM) else "this"
    call.set(place, _when(condition, call.args[place]))
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
    call = node.this if isinstance(node, exp.WithinGroup) else node
    inside = [n for n in node.walk() if n is not node and n is not call and is_aggregate(n)]
    if inside:
        raise Refusal("aggregate_function", detail, line)
    if name in ORDER_DEPENDENT_NAMES:
        raise Refusal("order_dependent_aggregate", detail, line)
    if isinstance(node, exp.WithinGroup) and isinstance(call, (exp.Mode, *SPELLED)):
        return
    adjustable = isinstance(node, (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max))
    one_value = isinstance(node, (exp.Mode, exp.GroupConcat, *RECOMPUTABLE, *ANY_VALUE, *LISTED, *BESIDE_EXTREMUM))
    if not adjustable and not one_value and name not in RECOMPUTABLE_NAMES:
        raise Refusal("aggregate_function", detail, line)


def _refuse_ungrouped(expression: exp.Expr, aggregate: Aggregate, later: frozenset[str]) -> None:
    for column in expression.find_all(exp.Column):
        if column.name not in aggregate.column_names and column.name not in later:
            raise Refusal("aggregate_function", f"{expression.sql(dialect='spark')[:60]}", line_of(expression))


def result_type(call: exp.Expr, types: dict[str, str]) -> str:
    """Spark's type of an aggregate's result, or ``""``."""
    if isinstance(call, exp.Count):
        return "bigint"
    if isinstance(call, exp.Anonymous) and call.expressions and isinstance(call.expressions[0], LISTED):
        return result_type(call.expressions[0], types)
    first = _argument(call)
    argument = infer(first, types) if first is not None else ""
    if isinstance(call, (exp.Min, exp.Max, *BESIDE_EXTREMUM)):
        return argument
    if isinstance(call, DOUBLE):
        return "double"
    if isinstance(call, (exp.LogicalAnd, exp.LogicalOr)):
        return "boolean"
    if isinstance(call, LISTED):
        return f"array<{argument}>" if argument else ""
    if is_interval(argument) and isinstance(call, (exp.Sum, exp.Avg)):
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

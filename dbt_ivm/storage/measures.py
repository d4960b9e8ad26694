"""Measures as stored columns.

COUNT, SUM and AVG are kept as counts and sums that a change can be added to; MIN and MAX as they are.  If one
measure of a view cannot be adjusted exactly (floating point, DISTINCT, unknown types, …) all measures of the view
are stored as they are and affected groups are recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.operators import Aggregate, Measure, Operator, Project, Projection, col
from dbt_ivm.types import decimal_of, infer, is_floating, is_integral

#: Wider decimals lose digits when multiplied by a weight.
WIDEST_WEIGHTED_DECIMAL = 27
#: Wider decimals lose digits when a stored sum is divided by a count.
WIDEST_AVERAGED_DECIMAL = 14


@dataclass(frozen=True)
class Partial:
    """A stored column: what it is (count, nonnull, sum, min, max) and of which argument column."""

    name: str
    role: str
    argument: str = ""
    type: str = ""


@dataclass(frozen=True)
class StoredMeasures:
    """``values`` gives each of the view's measures as an expression over stored columns."""

    aggregate: Aggregate
    adjustable: bool
    partials: tuple[Partial, ...]
    values: dict[str, exp.Expr]

    def having(self, *roles: str) -> tuple[Partial, ...]:
        return tuple(p for p in self.partials if p.role in roles)


def store_measures(aggregate: Aggregate, group: dict[str, str], fast_float_sums: bool) -> StoredMeasures:
    """The aggregate over stored column names, with a hidden row count."""
    types = aggregate.input.types
    if all(_is_adjustable(m.call, types, fast_float_sums) for m in aggregate.measures):
        return _adjustable(aggregate, group)
    return _recomputed(aggregate, group)


def _is_adjustable(call: exp.Expr, types: dict[str, str], fast_float_sums: bool) -> bool:
    if isinstance(call.this, exp.Distinct):
        return False
    if isinstance(call, (exp.Count, exp.Min, exp.Max)):
        return not call.expressions
    if not isinstance(call, (exp.Sum, exp.Avg)):
        return False
    argument = infer(call.this, types)
    decimal = decimal_of(argument)
    if decimal:
        widest = WIDEST_AVERAGED_DECIMAL if isinstance(call, exp.Avg) else WIDEST_WEIGHTED_DECIMAL
        return decimal[0] <= widest
    return is_integral(argument) or (fast_float_sums and is_floating(argument))


def _recomputed(aggregate: Aggregate, group: dict[str, str]) -> StoredMeasures:
    kept = [
        n for n in aggregate.input.column_names if any(c.name == n for m in aggregate.measures for c in _columns(m))
    ]
    renamed = {n: names.hidden("argument", i) for i, n in enumerate(kept, 1)}
    source = _input(aggregate, group, {renamed[n]: col(n) for n in kept})
    measures = [Measure(names.COUNT, exp.Count(this=exp.Star()), "bigint")]
    values: dict[str, exp.Expr] = {}
    for number, measure in enumerate(aggregate.measures, 1):
        stored = names.hidden("measure", number)
        call = measure.call.copy().transform(lambda n: col(renamed[n.name]) if isinstance(n, exp.Column) else n)
        measures.append(Measure(stored, call, measure.type))
        values[measure.name] = col(stored)
    partials = tuple(Partial(m.name, "measure", type=m.type) for m in measures)
    result = Aggregate(source, tuple(group.values()), tuple(measures), aggregate.is_global)
    return StoredMeasures(result, False, partials, values)


def _columns(measure: Measure) -> list[exp.Column]:
    return list(measure.call.find_all(exp.Column))


def _input(aggregate: Aggregate, group: dict[str, str], arguments: dict[str, exp.Expr]) -> Operator:
    keys = tuple(Projection(stored, col(g)) for g, stored in group.items())
    return Project(aggregate.input, keys + tuple(Projection(n, e) for n, e in arguments.items()))


@dataclass
class _Collector:
    """Arguments and partials, each once."""

    types: dict[str, str]
    arguments: dict[str, exp.Expr] = field(default_factory=dict)
    partials: list[Partial] = field(default_factory=list)

    def argument(self, expression: exp.Expr) -> str:
        for name, known in self.arguments.items():
            if known == expression:
                return name
        name = names.hidden("argument", len(self.arguments) + 1)
        self.arguments[name] = expression
        return name

    def partial(self, role: str, expression: exp.Expr) -> str:
        argument = self.argument(expression)
        for known in self.partials:
            if (known.role, known.argument) == (role, argument):
                return known.name
        number = argument.rsplit("_", 1)[1]
        partial = Partial(f"{names.PREFIX}{role}_{number}", role, argument, infer(expression, self.types))
        self.partials.append(partial)
        return partial.name


def _adjustable(aggregate: Aggregate, group: dict[str, str]) -> StoredMeasures:
    collector = _Collector(aggregate.input.types)
    values = {m.name: _value(m.call, collector) for m in aggregate.measures}
    source = _input(aggregate, group, collector.arguments)
    partials = (Partial(names.COUNT, "count"), *collector.partials)
    measures = tuple(Measure(p.name, _initial(p), "") for p in partials)
    result = Aggregate(source, tuple(group.values()), measures, aggregate.is_global)
    return StoredMeasures(result, True, partials, values)


def _initial(partial: Partial) -> exp.Expr:
    """The stored column computed from scratch."""
    if partial.role == "count":
        return exp.Count(this=exp.Star())
    argument = col(partial.argument)
    call = {"nonnull": exp.Count, "sum": exp.Sum, "min": exp.Min, "max": exp.Max}[partial.role]
    return call(this=argument)


def _value(call: exp.Expr, collector: _Collector) -> exp.Expr:
    """A measure of the view over stored columns; Spark's type and value exactly."""
    if isinstance(call, exp.Count):
        return col(names.COUNT) if isinstance(call.this, exp.Star) else col(collector.partial("nonnull", call.this))
    if isinstance(call, (exp.Min, exp.Max)):
        return col(collector.partial(call.key, call.this))
    if isinstance(call, exp.Sum):
        collector.partial("nonnull", call.this)
        return col(collector.partial("sum", call.this))
    return _average(call.this, collector)


def _average(argument: exp.Expr, collector: _Collector) -> exp.Expr:
    kind = infer(argument, collector.types)
    if kind == "bigint":  # Spark averages integers as doubles; an exact sum cannot overflow or drift
        argument = nodes.cast(argument.copy(), "decimal(20,0)")
    present = exp.func("NULLIF", col(collector.partial("nonnull", argument)), exp.Literal.number(0))
    total: exp.Expr = col(collector.partial("sum", argument))
    decimal = decimal_of(kind)
    if decimal:
        quotient = exp.Div(this=total, expression=nodes.cast(present, "decimal(20,0)"))
        return nodes.cast(quotient, f"decimal({decimal[0] + 4},{decimal[1] + 4})")
    as_double = nodes.cast(total, "double")
    return exp.Div(this=as_double, expression=nodes.cast(present, "double"))

"""One qualified SELECT: FROM and JOIN, WHERE, GROUP BY with its measures, HAVING, DISTINCT, the select list."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.bind import with_real_names
from dbt_ivm.frontend.builtin_functions import SCALAR_FUNCTIONS
from dbt_ivm.frontend.functions import (
    AGGREGATE_NAMES,
    GENERATOR_NAMES,
    NON_DETERMINISTIC,
    NON_DETERMINISTIC_NAMES,
    ORDER_DEPENDENT,
    ORDER_DEPENDENT_NAMES,
    TIME_FUNCTIONS,
    TIME_NAMES,
    UNSUPPORTED_AGGREGATES,
    function_names,
)
from dbt_ivm.frontend.lower import Lowering, Rows
from dbt_ivm.frontend.lower_aggregate import has_aggregates, lower_aggregate
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.nodes import conjuncts
from dbt_ivm.operators import Aggregate, Filter, Join, OneRow, Operator, Project, Projection, col


def lower_select(lowering: Lowering, select: exp.Select) -> Rows:
    _refuse_clauses(select)
    scope = Scope(lowering, line_of(select))
    plan = _from(scope, select)
    where = select.args.get("where")
    if where is not None:
        plan = Filter(plan, scope.resolve(where.this))

    outputs = [(item.alias_or_name, scope.resolve(item.unalias())) for item in select.selects]
    having = select.args.get("having")
    condition = scope.resolve(having.this) if having is not None else None
    group = select.args.get("group")
    if group is not None or has_aggregates([e for _, e in outputs]) or condition is not None:
        keys = _group_keys(scope, group, [e for _, e in outputs])
        plan, outputs, condition = lower_aggregate(lowering, plan, keys, outputs, condition, group is not None)
        if condition is not None:
            plan = Filter(plan, condition)

    columns = [(name, lowering.fresh(f"o_{name}"), expression) for name, expression in outputs]
    plan = Project(plan, tuple(Projection(column, expression) for _, column, expression in columns))
    if select.args.get("distinct") is not None:
        plan = Aggregate(plan, plan.column_names)
    return Rows(plan, tuple((name, column) for name, column, _ in columns))


class Scope:
    """The FROM clause's names: ``alias.column`` to a column of the plan."""

    def __init__(self, lowering: Lowering, line: int | None) -> None:
        self.lowering = lowering
        self.line = line
        self.columns: dict[tuple[str, str], str] = {}

    def add(self, alias: str, rows: Rows) -> Operator:
        for name, column in rows.outputs:
            self.columns[(alias, name)] = column
        return rows.plan

    def resolve(self, expression: exp.Expr) -> exp.Expr:
        """The expression over the plan's columns; refuses what has no incremental meaning."""
        self.refuse(expression)

        def replace_column(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column):
                return col(self.columns[(node.table, node.name)])
            return node

        return expression.transform(replace_column)

    def refuse(self, expression: exp.Expr) -> None:
        for node in expression.walk():
            construct = _refused_construct(node)
            if construct:
                detail = with_real_names(node.sql(dialect="spark"), self.lowering.relations)
                raise Refusal(construct, detail[:60], line_of(node) or line_of(expression) or self.line)


def _from(scope: Scope, select: exp.Select) -> Operator:
    from_ = select.args.get("from_")
    if from_ is None:
        return OneRow()
    members = [_source(scope, from_.this)]
    predicates: list[exp.Expr] = []
    for join in select.args.get("joins") or ():
        _refuse_join(join)
        members.append(_source(scope, join.this))
        if join.args.get("on") is not None:
            predicates.extend(conjuncts(scope.resolve(join.args["on"])))
    return members[0] if len(members) == 1 else Join(tuple(members), tuple(predicates))


def _source(scope: Scope, source: exp.Expr) -> Operator:
    lowering, alias = scope.lowering, source.alias
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        if source.name in lowering.ctes and source.name not in lowering.relations:
            return scope.add(alias, lowering.renamed(lowering.ctes[source.name], alias))
        return scope.add(alias, lowering.relation(source.name, alias))
    if isinstance(source, exp.Subquery):
        if source.args.get("pivots"):
            raise Refusal("pivot", "", line_of(source))
        if source.args.get("sample"):
            raise Refusal("sample", "", line_of(source))
        return scope.add(alias, lowering.renamed(lowering.query(source.this), alias))
    if isinstance(source, exp.Values):
        raise Refusal("values", source.sql(dialect="spark")[:60], line_of(source))
    raise Refusal("lateral", source.sql(dialect="spark")[:60], line_of(source))


def _refuse_join(join: exp.Join) -> None:
    words = f"{join.method} {join.side} {join.kind}".upper().split()
    line = line_of(join)
    if "SEMI" in words or "ANTI" in words:
        raise Refusal("semi_join", f"{' '.join(words)} JOIN", line)
    if {"LEFT", "RIGHT", "FULL", "OUTER"} & set(words):
        raise Refusal("outer_join", f"{' '.join(words)} JOIN", line)
    if isinstance(join.this, exp.Lateral):
        raise Refusal("lateral", join.this.sql(dialect="spark")[:60], line)


def _refuse_clauses(select: exp.Select) -> None:
    line = line_of(select)
    if select.args.get("laterals"):
        raise Refusal("lateral", "LATERAL VIEW", line)
    if select.args.get("pivots"):
        raise Refusal("pivot", "", line)
    if select.args.get("qualify"):
        raise Refusal("window", "QUALIFY", line)
    if select.args.get("sample"):
        raise Refusal("sample", "", line)
    if select.args.get("windows"):
        raise Refusal("window", "WINDOW", line)


def _refused_construct(node: exp.Expr) -> str:
    called = function_names(node)
    if isinstance(node, exp.Window):
        return "window"
    if isinstance(node, exp.Query) or (isinstance(node, exp.Exists) and isinstance(node.this, exp.Query)):
        return "subquery"
    if isinstance(node, TIME_FUNCTIONS) or called & TIME_NAMES:
        return "time_function"
    if isinstance(node, NON_DETERMINISTIC) or called & NON_DETERMINISTIC_NAMES:
        return "non_deterministic"
    if isinstance(node, ORDER_DEPENDENT) or called & ORDER_DEPENDENT_NAMES:
        return "order_dependent_aggregate"
    if called & UNSUPPORTED_AGGREGATES:
        return "aggregate_function"
    if isinstance(node, exp.Anonymous) and not called & (SCALAR_FUNCTIONS | AGGREGATE_NAMES):
        return "unknown_function"
    return "lateral" if isinstance(node, exp.UDTF) or called & GENERATOR_NAMES else ""


def _group_keys(scope: Scope, group: exp.Group | None, outputs: list[exp.Expr]) -> list[exp.Expr]:
    if group is None:
        return []
    for kind in ("grouping_sets", "cube", "rollup", "totals"):
        if group.args.get(kind):
            raise Refusal("grouping_sets", kind.upper(), line_of(group))
    if group.args.get("all"):
        return [e for e in outputs if not has_aggregates([e])]
    for key in group.expressions:
        if isinstance(key, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            raise Refusal("grouping_sets", key.sql(dialect="spark")[:60], line_of(key) or line_of(group))
    return [scope.resolve(e) for e in group.expressions]

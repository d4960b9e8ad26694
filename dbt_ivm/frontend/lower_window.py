"""Window functions of a select list: one operator per partitioning, below the select list's other expressions."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.lower import Lowering
from dbt_ivm.frontend.lower_aggregate import result_type
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.frontend.scope import Scope
from dbt_ivm.frontend.settle_ties import depends_on_place
from dbt_ivm.operators import Operator, Project, Projection, WindowFunction, Windowing, col
from dbt_ivm.types import infer

#: Result types of ranking functions.
RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile)
SHARES = (exp.PercentRank, exp.CumeDist)
#: Functions that give one of their argument's values.
PICKS = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.First, exp.Last)


def named_windows(select: exp.Select) -> dict[str, exp.Window]:
    """WINDOW w AS (…)."""
    return {w.name: w for w in select.args.get("windows") or ()}


def spelled_out(scope: Scope, expression: exp.Expr, named: dict[str, exp.Window]) -> exp.Expr:
    """The expression with OVER w replaced by what w stands for; every window needs a partitioning."""

    def replace_name(node: exp.Expr) -> exp.Expr:
        name = node.args.get("alias") if isinstance(node, exp.Window) else None
        if name is None or name.name not in named:
            return node
        definition = named[name.name]
        whole = node.copy()
        whole.set("alias", None)
        for part in ("partition_by", "order", "spec"):
            if definition.args.get(part) and not node.args.get(part):
                given = definition.args[part]
                whole.set(part, [g.copy() for g in given] if isinstance(given, list) else given.copy())
        return whole

    whole = expression.transform(replace_name) if named else expression
    for window in whole.find_all(exp.Window):
        if not window.args.get("partition_by"):
            raise Refusal("window", scope.text(window), line_of(window) or scope.line)
    return whole


def lower_windows(lowering: Lowering, plan: Operator, expressions: list[exp.Expr]) -> tuple[Operator, list[exp.Expr]]:
    """The plan with the windows' columns, and the expressions over them."""
    calls: list[exp.Window] = []
    for expression in expressions:
        for node in expression.find_all(exp.Window):
            if node not in calls:
                calls.append(node)
    if not calls:
        return plan, expressions
    made: dict[int, str] = {}
    # functions that depend on a row's place among equals share an operator only with those of the same order: between
    # operators the values of the lower one tell equal rows apart, so that values of one row stay together
    by_partition: dict[tuple[tuple[str, ...], str], list[WindowFunction]] = {}
    for number, call in enumerate(calls):
        plan, partition, whole = _with_columns(lowering, plan, call)
        name = lowering.fresh(call.this.key)
        made[number] = name
        order = call.args.get("order")
        apart = str(order) if depends_on_place(call) else ""
        functions = by_partition.setdefault((partition, apart), [])
        functions.append(WindowFunction(name, whole, _type(call.this, plan.types)))
    for (partition, _), functions in by_partition.items():
        plan = Windowing(plan, partition, tuple(functions))

    def replaced(node: exp.Expr) -> exp.Expr:
        return col(made[calls.index(node)]) if isinstance(node, exp.Window) else node

    return plan, [e.transform(replaced) for e in expressions]


def _with_columns(lowering: Lowering, plan: Operator, call: exp.Window) -> tuple[Operator, tuple[str, ...], exp.Expr]:
    """The partition's expressions as columns of the plan."""
    names: list[str] = []
    computed: list[Projection] = []
    for key in call.args["partition_by"]:
        if isinstance(key, exp.Column):
            names.append(key.name)
            continue
        known = next((p.name for p in getattr(plan, "projections", ()) if p.expression == key), None)
        if known is None:
            known = lowering.fresh("partition_key")
            computed.append(Projection(known, key))
        names.append(known)
    if computed:
        plan = Project(plan, (*(Projection(n, col(n)) for n in plan.column_names), *computed))
    whole = call.copy()
    whole.set("partition_by", [col(n) for n in names])
    return plan, tuple(dict.fromkeys(names)), whole


def _type(function: exp.Expr, types: dict[str, str]) -> str:
    inner = function
    while isinstance(inner, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        inner = inner.this
    if isinstance(inner, RANKS):
        return "int"
    if isinstance(inner, SHARES):
        return "double"
    if isinstance(inner, PICKS):
        return infer(inner.this, types)
    return result_type(inner, types)

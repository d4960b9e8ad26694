"""Window functions of a select list: one operator per partitioning, below the select list's other expressions."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.lower import Lowering
from dbt_ivm.frontend.lower_aggregate import result_type
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.frontend.scope import Scope
from dbt_ivm.frontend.settle_frames import settle_frame
from dbt_ivm.frontend.settle_ties import depends_on_place
from dbt_ivm.operators import (
    Aggregate,
    Clock,
    Existence,
    Generate,
    LeftJoin,
    OneRow,
    Operator,
    Project,
    Projection,
    WindowFunction,
    Windowing,
    col,
)
from dbt_ivm.operators.window_reach import Looks, inner_function, looks
from dbt_ivm.types import infer

#: Result types of ranking functions.
RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile)
SHARES = (exp.PercentRank, exp.CumeDist)
#: Functions that give one of their argument's values.
PICKS = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.First, exp.Last)


def named_windows(select: exp.Select) -> dict[str, exp.Window]:
    """WINDOW w AS (…)."""
    return {w.name: w for w in select.args.get("windows") or ()}


def spelled_out(expression: exp.Expr, named: dict[str, exp.Window], apart: tuple[str, ...] = ()) -> exp.Expr:
    """The expression with OVER w replaced by what w stands for.

    Args:
        apart: columns by which every window is partitioned, too.
    """

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
    if not apart or not whole.find(exp.Window):
        return whole
    whole = whole.copy()
    for window in list(whole.find_all(exp.Window)):
        window.set("partition_by", [*window.args.get("partition_by", ()), *(col(n) for n in apart)])
    return whole


def refuse_windows(scope: Scope, expressions: list[exp.Expr]) -> None:
    """Refuse functions that no order settles, and those of a whole table: any change would write every row again.

    Groups are few enough for that.
    """
    for expression in expressions:
        for window in expression.find_all(exp.Window):
            if settle_frame(window) is None:
                raise Refusal("order_dependent_aggregate", scope.text(window), line_of(window) or scope.line)
            if window.args.get("partition_by") or looks(window) is not Looks.EVERYWHERE or _is_of_groups(scope.plan):
                continue
            raise Refusal("window", scope.text(window), line_of(window) or scope.line)


def _is_of_groups(plan: Operator) -> bool:
    """Whether rows are groups of other rows, at most one row for each, or constants."""
    if isinstance(plan, (Aggregate, OneRow, Clock)):
        return True
    if isinstance(plan, (LeftJoin, Existence)):
        return _is_of_groups(plan.left)
    return bool(plan.inputs) and not isinstance(plan, Generate) and all(_is_of_groups(i) for i in plan.inputs)


def lower_windows(lowering: Lowering, plan: Operator, expressions: list[exp.Expr]) -> tuple[Operator, list[exp.Expr]]:
    """The plan with the windows' columns, and the expressions over them."""
    calls: list[exp.Window] = []
    for expression in expressions:
        for node in expression.find_all(exp.Window):
            if node not in calls:
                calls.append(node)
    if not calls:
        return plan, expressions
    settled = [s for s in map(settle_frame, calls) if s is not None]  # the others are refused
    plan, made = _placed(lowering, plan, [s.call for s in settled])
    several = [n for n, s in enumerate(settled) if s.pick is not None]
    plan, picked = _placed(lowering, plan, [settled[n].for_peers(col(made[n])) for n in several])
    for number, name in zip(several, picked, strict=True):
        made[number] = name

    def replaced(node: exp.Expr) -> exp.Expr:
        return col(made[calls.index(node)]) if isinstance(node, exp.Window) else node

    return plan, [e.transform(replaced) for e in expressions]


def _placed(lowering: Lowering, plan: Operator, calls: list[exp.Window]) -> tuple[Operator, list[str]]:
    """The plan with a column for each call, and their names."""
    made: list[str] = []
    # functions that depend on a row's place among equals share an operator only with those of the same order: between
    # operators the values of the lower one tell equal rows apart, so that values of one row stay together
    by_partition: dict[tuple[tuple[str, ...], str], list[WindowFunction]] = {}
    for call in calls:
        plan, partition, whole = _with_columns(lowering, plan, call)
        made.append(lowering.fresh(inner_function(call).key))
        apart = str(call.args.get("order")) if depends_on_place(call) else ""
        functions = by_partition.setdefault((partition, apart), [])
        functions.append(WindowFunction(made[-1], whole, _type(call, plan.types)))
    for (partition, _), functions in by_partition.items():
        plan = Windowing(plan, partition, tuple(functions))
    return plan, made


def _with_columns(lowering: Lowering, plan: Operator, call: exp.Window) -> tuple[Operator, tuple[str, ...], exp.Expr]:
    """The partition's expressions as columns of the plan."""
    names: list[str] = []
    computed: list[Projection] = []
    for key in call.args.get("partition_by") or ():
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
    if names:
        whole.set("partition_by", [col(n) for n in names])
    return plan, tuple(dict.fromkeys(names)), whole


def _type(call: exp.Window, types: dict[str, str]) -> str:
    inner = inner_function(call)
    if isinstance(inner, RANKS):
        return "int"
    if isinstance(inner, SHARES):
        return "double"
    if isinstance(inner, PICKS):
        return infer(inner.this, types)
    return result_type(inner, types)

"""One qualified SELECT, clause by clause in the order SQL evaluates them."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.clocks import clock_of
from dbt_ivm.frontend.functions import is_aggregate
from dbt_ivm.frontend.grouping import grouping_sets
from dbt_ivm.frontend.lower import Lowering, Rows
from dbt_ivm.frontend.lower_aggregate import has_aggregates, lower_aggregate
from dbt_ivm.frontend.lower_from import GENERATORS, filtered, generated, lower_from
from dbt_ivm.frontend.lower_subquery import is_subquery, keep_rows
from dbt_ivm.frontend.lower_window import lower_windows, named_windows, spelled_out
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.frontend.scope import Scope
from dbt_ivm.operators import Aggregate, Filter, Project, Projection, references

#: A subquery that is computed after grouping stands as such a column until then.
LATER = "__ivm_later_"


def lower_select(lowering: Lowering, select: exp.Select) -> Rows:
    _refuse_clauses(select)
    scope = Scope(lowering, line_of(select))
    correlated = lower_from(scope, select)
    where = select.args.get("where")
    if where is not None:
        conditions = keep_rows(scope, where.this)
        scope.plan = filtered(scope.plan, conditions)
    if correlated:
        raise Refusal("subquery", "a join on columns of a query further out", line_of(select))

    windows = named_windows(select)
    items = [(item.alias_or_name, spelled_out(scope, item.unalias(), windows)) for item in select.selects]
    having, qualify, group = (select.args.get(clause) for clause in ("having", "qualify", "group"))
    conditions = [spelled_out(scope, c.this, windows) for c in (having, qualify) if c is not None]
    if group is not None or having is not None or has_aggregates([e for _, e in items] + conditions):
        outputs, kept = _grouped(scope, select, items, conditions)
    else:
        outputs = [(name, _item(scope, name, e)) for name, e in items]
        kept = [scope.resolve(c, keep=(exp.Window,)) for c in conditions]
    if having is not None:
        scope.plan = Filter(scope.plan, kept.pop(0))

    scope.plan, expressions = lower_windows(lowering, scope.plan, [e for _, e in outputs] + kept)
    if qualify is not None:
        scope.plan = Filter(scope.plan, expressions[-1])
    columns = [(name, lowering.fresh(f"o_{name}"), e) for (name, _), e in zip(outputs, expressions, strict=False)]
    plan = Project(scope.plan, tuple(Projection(column, expression) for _, column, expression in columns))
    outputs_of = tuple((name, column) for name, column, _ in columns)
    if select.args.get("distinct") is not None:
        return Rows(Aggregate(plan, plan.column_names), outputs_of)
    return Rows(plan, outputs_of)


def _item(scope: Scope, name: str, expression: exp.Expr) -> exp.Expr:
    """An item of the select list; a generator there makes rows."""
    if isinstance(expression, tuple(GENERATORS)):
        alias = scope.lowering.fresh("generated")
        names = ["pos", name] if isinstance(expression, (exp.Posexplode, exp.PosexplodeOuter)) else [name]
        if len(names) > 1:
            raise Refusal("lateral", scope.text(expression), line_of(expression) or scope.line)
        scope.plan = generated(scope, expression, alias, names)
        return scope.resolve(exp.column(name, table=alias))
    return scope.resolve(expression, keep=(exp.Window,))


def _grouped(
    scope: Scope, select: exp.Select, items: list[tuple[str, exp.Expr]], conditions: list[exp.Expr]
) -> tuple[list[tuple[str, exp.Expr]], list[exp.Expr]]:
    """GROUP BY: the select list and the conditions as expressions over groups.

    Subqueries inside aggregates belong to the rows below; all others are computed per group.
    """
    later: dict[str, exp.Expr] = {}
    group = select.args.get("group")
    given = list(group.expressions) if group is not None else []
    everything = [(name, _postponed(e, later, given)) for name, e in items]
    everything += [("", _postponed(c, later, given)) for c in conditions]
    resolved = [(name, scope.resolve(e, keep=(exp.Window,))) for name, e in everything]
    outputs = [e for _, e in resolved[: len(items)]]
    keys, sets = _keys(scope, group, outputs)
    scope.plan, rewritten, _ = lower_aggregate(
        scope.lowering, scope.plan, keys, resolved, None, group is not None, sets, frozenset(later)
    )
    if later:
        rewritten = [(name, _with_subqueries(scope, e, later)) for name, e in rewritten]
    return rewritten[: len(items)], [e for _, e in rewritten[len(items) :]]


def _postponed(expression: exp.Expr, later: dict[str, exp.Expr], keys: list[exp.Expr]) -> exp.Expr:
    """The expression with subqueries and clocks outside of aggregates and group keys replaced by columns."""

    def visit(node: exp.Expr) -> exp.Expr:
        if node in keys:
            return node
        if is_subquery(node) or clock_of(node):
            name = f"{LATER}{len(later)}"
            later[name] = node.copy()
            return exp.column(name)
        inside_rows = isinstance(node, exp.Filter) or is_aggregate(node)
        if not inside_rows or isinstance(node.parent, exp.Window):
            for part in list(node.iter_expressions()):
                changed = visit(part)
                if changed is not part:
                    part.replace(changed)
        return node

    is_concerned = any(is_subquery(n) or clock_of(n) for n in expression.walk())
    return visit(expression.copy()) if is_concerned else expression


def _with_subqueries(scope: Scope, expression: exp.Expr, later: dict[str, exp.Expr]) -> exp.Expr:
    for name in references(expression):
        if name in later:
            value = scope.resolve(later[name])

            def replaced(node: exp.Expr, name: str = name, value: exp.Expr = value) -> exp.Expr:
                return value.copy() if isinstance(node, exp.Column) and node.name == name else node

            expression = expression.transform(replaced)
    return expression


def _keys(
    scope: Scope, group: exp.Group | None, outputs: list[exp.Expr]
) -> tuple[list[exp.Expr], list[frozenset[int]] | None]:
    """The group's expressions, and which of them each grouping set has (None: all)."""
    if group is None:
        return [], None
    sets = grouping_sets(group)
    if sets is not None:
        keys = list(dict.fromkeys(e for s in sets for e in s))
        return [scope.resolve(k) for k in keys], [frozenset(keys.index(e) for e in s) for s in sets]
    return group_keys(scope, group, outputs), None


def group_keys(scope: Scope, group: exp.Group, outputs: list[exp.Expr]) -> list[exp.Expr]:
    if group.args.get("all"):
        return [e for e in outputs if not has_aggregates([e])]
    return [scope.resolve(e) for e in group.expressions]


def _refuse_clauses(select: exp.Select) -> None:
    line = line_of(select)
    if select.args.get("pivots"):
        raise Refusal("pivot", "", line)
    if select.args.get("sample"):
        raise Refusal("sample", "", line)

"""One qualified SELECT, clause by clause in the order SQL evaluates them."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.clocks import clock_of
from dbt_ivm.frontend.correlation import over_no_rows
from dbt_ivm.frontend.functions import is_aggregate
from dbt_ivm.frontend.generators import generated, is_generator
from dbt_ivm.frontend.given import Given
from dbt_ivm.frontend.grouping import grouping_sets
from dbt_ivm.frontend.lower import Lowering, Rows
from dbt_ivm.frontend.lower_aggregate import has_aggregates, lower_aggregate
from dbt_ivm.frontend.lower_from import filtered, lower_from
from dbt_ivm.frontend.lower_limit import keep_places, limit_of, order_keys
from dbt_ivm.frontend.lower_subquery import is_subquery, keep_rows
from dbt_ivm.frontend.lower_window import lower_windows, named_windows, refuse_windows, spelled_out
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.frontend.scope import Scope
from dbt_ivm.nodes import replace_columns
from dbt_ivm.operators import Aggregate, Filter, LeftJoin, Project, Projection, col, references

#: A subquery that is computed after grouping stands as such a column until then.
LATER = "__ivm_later_"


def lower_select(lowering: Lowering, select: exp.Select, given: Given | None = None) -> Rows:
    """``given``: values of a query around it, which the rows have as further columns (given.py)."""
    _refuse_clauses(select)
    scope = Scope(lowering, line_of(select))
    if given is not None:
        scope.columns.update(given.columns)
    correlated = lower_from(scope, select, given)
    where = select.args.get("where")
    if where is not None:
        conditions = keep_rows(scope, where.this)
        scope.plan = filtered(scope.plan, conditions)
    if correlated:
        raise Refusal("subquery", "a join on columns of a query further out", line_of(select))

    windows = named_windows(select)
    apart = given.inner if given is not None else ()
    added = given.outputs if given is not None else []
    named = [pair for item in select.selects for pair in _named_items(scope, item)]
    items = [(name, spelled_out(e, windows, apart)) for name, e in named]
    limit = limit_of(lowering, select)
    keys = order_keys(select, [*items]) if limit is not None else []
    is_distinct = select.args.get("distinct") is not None
    having, qualify, group = (select.args.get(clause) for clause in ("having", "qualify", "group"))
    conditions = [spelled_out(c.this, windows, apart) for c in (having, qualify) if c is not None]
    conditions += [spelled_out(key.ordered.this, windows, apart) for key in keys if not key.output]
    if is_distinct and any(not key.output for key in keys):
        raise Refusal("limit_number", "DISTINCT, ORDER BY something that is not selected", line_of(select))
    everything = [e for _, e in items] + conditions
    if group is not None or having is not None or has_aggregates(everything):
        outputs, kept = _grouped(scope, select, items + added, conditions, given)
    else:
        outputs = [(name, _item(scope, name, e)) for name, e in items] + added
        kept = [scope.resolve(c, keep=(exp.Window,)) for c in conditions]
    if having is not None:
        scope.plan = Filter(scope.plan, kept.pop(0))

    refuse_windows(scope, everything)
    scope.plan, expressions = lower_windows(lowering, scope.plan, [e for _, e in outputs] + kept)
    shown, others = expressions[: len(outputs)], expressions[len(outputs) :]
    if qualify is not None:
        scope.plan = Filter(scope.plan, others.pop(0))
    columns = [(name, lowering.fresh(f"o_{name}"), e) for (name, _), e in zip(outputs, shown, strict=True)]
    order = [Projection(lowering.fresh("order"), e) for e in others]
    plan = Project(scope.plan, (*(Projection(column, expression) for _, column, expression in columns), *order))
    rows = Rows(plan, tuple((name, column) for name, column, _ in columns))
    if is_distinct:
        rows = Rows(Aggregate(plan, plan.column_names), rows.outputs)
    if limit is None:
        return rows
    output, by = dict(reversed(rows.outputs)), iter(order)
    return keep_places(
        lowering, rows, limit, [key.by(output[key.output] if key.output else next(by).name) for key in keys]
    )


def _item(scope: Scope, name: str, expression: exp.Expr) -> exp.Expr:
    """An item of the select list; a generator there makes rows."""
    if is_generator(expression):
        alias = scope.lowering.fresh("generated")
        if isinstance(expression, (exp.Posexplode, exp.PosexplodeOuter)):
            raise Refusal("lateral", scope.text(expression), line_of(expression) or scope.line)
        scope.plan = generated(scope, expression, alias, [name])
        return scope.resolve(exp.column(name, table=alias))
    return scope.resolve(expression, keep=(exp.Window,))


def _named_items(scope: Scope, item: exp.Expr) -> list[tuple[str, exp.Expr]]:
    """An item of the select list; generator(…) AS (a, b) is several."""
    if not isinstance(item, exp.Aliases):
        return [(item.alias_or_name, item.unalias())]
    names = [a.name for a in item.aliases]
    if not is_generator(item.this):
        raise Refusal("unparsable", scope.text(item), line_of(item) or scope.line)
    alias = scope.lowering.fresh("generated")
    scope.plan = generated(scope, item.this, alias, names)
    return [(n, exp.column(n, table=alias)) for n in names]


def _grouped(
    scope: Scope,
    select: exp.Select,
    items: list[tuple[str, exp.Expr]],
    conditions: list[exp.Expr],
    given: Given | None = None,
) -> tuple[list[tuple[str, exp.Expr]], list[exp.Expr]]:
    """GROUP BY: the select list and the conditions as expressions over groups.

    Subqueries inside aggregates belong to the rows below; all others are computed per group.
    """
    later: dict[str, exp.Expr] = {}
    group = select.args.get("group")
    grouped_by = list(group.expressions) if group is not None else []
    everything = [(name, _postponed(e, later, grouped_by)) for name, e in items]
    everything += [("", _postponed(c, later, grouped_by)) for c in conditions]
    resolved = [(name, scope.resolve(e, keep=(exp.Window,))) for name, e in everything]
    outputs = [e for _, e in resolved[: len(items)]]
    keys, sets = _keys(scope, group, outputs)
    if given is not None:
        places = frozenset(range(len(keys), len(keys) + len(given.inner)))
        keys, sets = [*keys, *(col(n) for n in given.inner)], sets and [s | places for s in sets]
    grouped = group is not None or given is not None
    scope.plan, rewritten, _ = lower_aggregate(
        scope.lowering, scope.plan, keys, resolved, None, grouped, sets, frozenset(later)
    )
    if given is not None and group is None:
        if later:
            raise Refusal("subquery", "subqueries beside aggregates in a correlated subquery", line_of(select))
        rewritten = _one_row_each(scope, given, resolved, rewritten)
    if later:
        rewritten = [(name, _with_subqueries(scope, e, later)) for name, e in rewritten]
    return rewritten[: len(items)], [e for _, e in rewritten[len(items) :]]


def _one_row_each(
    scope: Scope, given: Given, over_rows: list[tuple[str, exp.Expr]], found: list[tuple[str, exp.Expr]]
) -> list[tuple[str, exp.Expr]]:
    """A row for every row of what is given, also where the aggregate is over no rows."""
    if any(e.find(exp.Window) for _, e in found):
        raise Refusal("subquery", "window functions over one group in a correlated subquery", scope.line)
    all_given = given.again(scope.lowering)
    same = dict(zip(given.inner, all_given.inner, strict=True))
    there = scope.lowering.fresh("is_there")
    values = [scope.lowering.fresh("value") for _ in found]
    shown = [Projection(v, e) for v, (_, e) in zip(values, found, strict=True)]
    kept = [Projection(n, col(n)) for n in given.inner]
    groups = Project(scope.plan, (*kept, *shown, Projection(there, exp.true())))
    on = tuple(exp.NullSafeEQ(this=col(new), expression=col(n)) for n, new in same.items())
    scope.plan = LeftJoin(all_given.plan, groups, on)
    outputs: list[tuple[str, exp.Expr]] = []
    for (name, e), value in zip(over_rows, values, strict=True):
        empty = replace_columns(over_no_rows(e), {n: col(new) for n, new in same.items()})
        chosen = exp.Case(ifs=[exp.If(this=col(there), true=col(value))], default=empty)
        outputs.append((name, col(value) if isinstance(empty, exp.Null) else exp.Paren(this=chosen)))
    return outputs


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

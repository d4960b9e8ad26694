"""One qualified SELECT, clause by clause in the order SQL evaluates them."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.correlation import over_no_rows
from dbt_ivm.frontend.generators import generated, is_generator
from dbt_ivm.frontend.given import Given
from dbt_ivm.frontend.grouping import group_elements, grouping_sets
from dbt_ivm.frontend.lower import Lowering, Rows
from dbt_ivm.frontend.lower_aggregate import has_aggregates, lower_aggregate
from dbt_ivm.frontend.lower_from import filtered, lower_from
from dbt_ivm.frontend.lower_limit import keep_places, limit_of, order_keys
from dbt_ivm.frontend.lower_subquery import keep_rows
from dbt_ivm.frontend.lower_window import lower_windows, named_windows, refuse_windows, spelled_out
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.frontend.postponed import Waiting, over_groups, postponed
from dbt_ivm.frontend.scope import Scope
from dbt_ivm.nodes import replace_columns
from dbt_ivm.operators import Aggregate, Filter, LeftJoin, Project, Projection, col


def lower_select(lowering: Lowering, select: exp.Select, given: Given | None = None) -> Rows:
    """``given``: values of a query around it, which the rows have as further columns (given.py)."""
    _refuse_clauses(select)
    scope = Scope(lowering, line_of(select))
    if given is not None:
        scope.columns.update(given.columns)
        scope.given = frozenset(given.columns)
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
    having, qualify, group = (select.args.get(clause) for clause in ("having", "qualify", "group"))
    waiting = Waiting() if group is not None or having is not None or has_aggregates(select.selects) else None
    named = [pair for item in select.selects for pair in _named_items(scope, item, waiting)]
    items = [(name, spelled_out(e, windows, apart)) for name, e in named]
    limit = limit_of(lowering, select)
    keys = order_keys(select, [*items]) if limit is not None else []
    is_distinct = select.args.get("distinct") is not None
    conditions = [spelled_out(c.this, windows, apart) for c in (having, qualify) if c is not None]
    conditions += [spelled_out(key.ordered.this, windows, apart) for key in keys if not key.output]
    if is_distinct and any(not key.output for key in keys):
        raise Refusal("limit_number", "DISTINCT, ORDER BY something that is not selected", line_of(select))
    everything = [e for _, e in items] + conditions
    if waiting is not None or has_aggregates(everything):
        outputs, kept = _grouped(scope, select, items + added, conditions, given, waiting or Waiting())
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
        _refuse_several(scope, expression)
        scope.plan = generated(scope, expression, alias, [name])
        return scope.resolve(exp.column(name, table=alias))
    return scope.resolve(expression, keep=(exp.Window,))


def _named_items(scope: Scope, item: exp.Expr, waiting: Waiting | None) -> list[tuple[str, exp.Expr]]:
    """An item of the select list; generator(…) AS (a, b) is several."""
    if not isinstance(item, exp.Aliases):
        name, expression = item.alias_or_name, item.unalias()
        if waiting is None or not is_generator(expression):
            return [(name, expression)]
        _refuse_several(scope, expression)
        return waiting.columns(scope.lowering.fresh("generated"), [name], expression)
    names = [a.name for a in item.aliases]
    if not is_generator(item.this):
        raise Refusal("unparsable", scope.text(item), line_of(item) or scope.line)
    alias = scope.lowering.fresh("generated")
    if waiting is not None:
        return waiting.columns(alias, names, item.this)
    scope.plan = generated(scope, item.this, alias, names)
    return [(n, exp.column(n, table=alias)) for n in names]


def _refuse_several(scope: Scope, generator: exp.Expr) -> None:
    """Several columns under one name."""
    if isinstance(generator, (exp.Posexplode, exp.PosexplodeOuter)):
        raise Refusal("lateral", scope.text(generator), line_of(generator) or scope.line)


def _grouped(
    scope: Scope,
    select: exp.Select,
    items: list[tuple[str, exp.Expr]],
    conditions: list[exp.Expr],
    given: Given | None,
    waiting: Waiting,
) -> tuple[list[tuple[str, exp.Expr]], list[exp.Expr]]:
    """GROUP BY: the select list and the conditions as expressions over groups.

    Subqueries inside aggregates belong to the rows below; all others are computed per group.
    """
    later = waiting.later
    group = select.args.get("group")
    grouped_by = group_elements(group) if group is not None else []
    everything = [(name, postponed(e, later, grouped_by)) for name, e in items]
    arguments = [argument for *_, call in waiting.generators for argument in call.iter_expressions()]
    everything += [("", postponed(e, later, grouped_by)) for e in conditions + arguments]
    resolved = [(name, scope.resolve(e, keep=(exp.Window,))) for name, e in everything]
    keys, sets = _keys(scope, group)
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
    if waiting.generators:
        _make_rows_of_groups(scope, waiting, rewritten, len(rewritten) - len(arguments))
    if later:
        rewritten = [(name, over_groups(scope, e, later)) for name, e in rewritten]
    return rewritten[: len(items)], [e for _, e in rewritten[len(items) : len(items) + len(conditions)]]


def _make_rows_of_groups(scope: Scope, waiting: Waiting, found: list[tuple[str, exp.Expr]], first: int) -> None:
    """``found`` has the generators' arguments from the place ``first`` on."""
    if any(e.find(exp.Window) for _, e in found):  # of the groups, before the generator makes rows of them
        raise Refusal("lateral", "beside window functions over groups", scope.line)
    arguments = iter([e for _, e in found[first:]])
    for alias, names, generator in waiting.generators:
        call = generator.copy()
        for written in list(call.iter_expressions()):
            written.replace(over_groups(scope, next(arguments), waiting.later))
        scope.plan = generated(scope, call, alias, names)


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


def _keys(scope: Scope, group: exp.Group | None) -> tuple[list[exp.Expr], list[frozenset[int]] | None]:
    """The group's expressions, and which of them each grouping set has (None: all)."""
    if group is None:
        return [], None
    sets = grouping_sets(group)
    if sets is not None:
        keys = group_elements(group)
        return [scope.resolve(k) for k in keys], [frozenset(keys.index(e) for e in s) for s in sets]
    return group_keys(scope, group), None


def group_keys(scope: Scope, group: exp.Group) -> list[exp.Expr]:
    return [scope.resolve(e) for e in group_elements(group)]


def _refuse_clauses(select: exp.Select) -> None:
    line = line_of(select)
    if select.args.get("pivots"):
        raise Refusal("pivot", "", line)
    if select.args.get("sample"):
        raise Refusal("sample", "", line)

"""Subqueries in expressions, as joins that keep the rows of the query around them.

    EXISTS (q)          as a condition SEMI, NOT EXISTS ANTI; elsewhere a mark
    x IN (q)            as a condition SEMI on x = y; elsewhere a mark, FALSE when some comparison is unknown
    x NOT IN (q)        as a condition: no y is equal, no y is NULL, and x is not NULL unless q is empty
    (q) as a value      LEFT JOIN with the one row of q, per combination of the outer columns that q uses

Predicates of q that use columns of the query around it become the join's condition.  Where q groups its rows, these
must be equalities (``connect``), and their inner sides become further group columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.clocks import asks_the_clock
from dbt_ivm.frontend.correlation import as_set, bare, is_correlated, outer_columns, over_no_rows, stands_in_conditions
from dbt_ivm.frontend.given import given_values, without_values
from dbt_ivm.frontend.negated import is_negated
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.frontend.scope import Scope
from dbt_ivm.nodes import conjuncts, replace_columns
from dbt_ivm.operators import (
    Aggregate,
    Existence,
    Filter,
    Join,
    Kind,
    LeftJoin,
    MovingFilter,
    Operator,
    Project,
    Projection,
    col,
    references,
)
from dbt_ivm.operators.preserving import equalities, one_key_each


@dataclass(frozen=True)
class Inner:
    """The rows of a subquery: values as expressions over the plan, and predicates that connect it to the outside."""

    plan: Operator
    values: tuple[exp.Expr, ...]
    predicates: tuple[exp.Expr, ...] = ()


def is_subquery(node: exp.Expr) -> bool:
    if isinstance(node, exp.Exists):
        return isinstance(node.this, exp.Query)
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    return isinstance(node, (exp.Subquery, exp.Query))


def keep_rows(scope: Scope, condition: exp.Expr) -> list[exp.Expr]:
    """WHERE: conditions on the rows of FROM filter the scope's plan, then subqueries that stand as conditions do.

    Returns the other conditions, resolved: on values of subqueries, and on columns of an enclosing query.
    """
    parts = [_unwrapped(part) for part in conjuncts(_unwrapped(condition))]
    asking = [part for part in parts if any(is_subquery(n) for n in part.walk())]
    moving = [part for part in parts if part not in asking and asks_the_clock(part)]
    plain = [p for part in parts if part not in asking and part not in moving for p in conjuncts(scope.resolve(part))]
    have = set(scope.plan.column_names)
    own = [p for p in plain if set(references(p)) <= have]
    left = [p for p in plain if p not in own]
    if own:  # before the subqueries: they join what is left
        scope.plan = Filter(scope.plan, exp.and_(*own))
    for part in moving:
        left += _moved_by_the_clock(scope, part)
    for part in asking:
        negated = isinstance(part, exp.Not)
        inside = _unwrapped(part.this) if negated else part
        if isinstance(inside, exp.Exists) and is_subquery(inside):
            inner = inner_rows(scope, as_set(inside.this, is_tested=True))
            kind = Kind.ANTI if negated else Kind.SEMI
            scope.plan = Existence(scope.plan, _visible(inner), inner.predicates, kind)
        elif isinstance(inside, exp.In) and is_subquery(inside):
            _keep_in(scope, inside, negated)
        else:
            left += conjuncts(scope.resolve(part))
    return left


def _moved_by_the_clock(scope: Scope, condition: exp.Expr) -> list[exp.Expr]:
    """A condition that asks for the date or the time filters the scope's plan, unless it uses an enclosing query."""
    scope.is_condition = True
    try:
        resolved = scope.resolve(condition)
    finally:
        scope.is_condition = False
    used = {n for n in references(resolved) if not names.is_clock(n)}
    if not used <= set(scope.plan.column_names):
        return conjuncts(scope.resolve(condition))
    scope.plan = MovingFilter(scope.plan, resolved)
    return []


def subquery_value(scope: Scope, node: exp.Expr) -> exp.Expr:
    """A subquery inside an expression, as an expression over columns that the scope's plan has from now on.

    The same subquery again is the same expression: GROUP BY and the select list mean one column.  IN below NOT is
    another one.
    """
    for known, value in scope.subqueries:
        if (
            known == node
            and is_negated(known) == is_negated(node)
            and set(references(value)) <= set(scope.plan.column_names)
        ):
            return value.copy()
    value = _value(scope, node)
    scope.subqueries.append((node.copy(), value))
    return value


def _value(scope: Scope, node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Exists):
        return _mark(scope, inner_rows(scope, as_set(node.this, is_tested=True)), ())
    if isinstance(node, exp.In):
        return _in_value(scope, node)
    return _scalar(scope, node)


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


# ------------------------------------------------------------------------------------------------ EXISTS and IN


def _mark(scope: Scope, inner: Inner, more: tuple[exp.Expr, ...]) -> exp.Expr:
    mark = scope.lowering.fresh("mark")
    scope.plan = Existence(scope.plan, _visible(inner, more), (*inner.predicates, *more), Kind.MARK, mark)
    return col(mark)


def _compared(scope: Scope, node: exp.In) -> tuple[Inner, list[tuple[exp.Expr, exp.Expr]]]:
    """The subquery of x IN (q), and the pairs of expressions that are compared."""
    tested = _unwrapped(node.this)
    items = tested.expressions if isinstance(tested, exp.Tuple) else [tested]
    outer = [scope.resolve(i) for i in items]
    inner = inner_rows(scope, as_set(node.args["query"]))
    if len(outer) != len(inner.values):
        raise Refusal("subquery", scope.text(node), line_of(node) or scope.line)
    return inner, list(zip(outer, inner.values, strict=True))


def _equal(pairs: list[tuple[exp.Expr, exp.Expr]]) -> tuple[exp.Expr, ...]:
    return tuple(exp.EQ(this=nodes.grouped(a), expression=nodes.grouped(b)) for a, b in pairs)


def _keep_in(scope: Scope, node: exp.In, negated: bool) -> None:
    inner, pairs = _compared(scope, node)
    same = _equal(pairs)
    kind = Kind.ANTI if negated else Kind.SEMI
    scope.plan = Existence(scope.plan, _visible(inner, same), (*inner.predicates, *same), kind)
    if negated:
        for right, unknown in _unknown(inner, pairs):
            scope.plan = Existence(scope.plan, right, (*inner.predicates, *unknown), Kind.ANTI)


def _in_value(scope: Scope, node: exp.In) -> exp.Expr:
    """TRUE or FALSE, never NULL, as Spark has it: x IN (q) is FALSE where it is unknown, and so is x NOT IN (q)."""
    inner, pairs = _compared(scope, node)
    marks = [_mark(scope, inner, _equal(pairs))]
    for right, unknown in _unknown(inner, pairs) if is_negated(node) else ():
        mark = scope.lowering.fresh("mark")
        scope.plan = Existence(scope.plan, right, (*inner.predicates, *unknown), Kind.MARK, mark)
        marks.append(col(mark))
    return marks[0] if len(marks) == 1 else exp.Paren(this=exp.or_(*marks, copy=False))


def _unknown(inner: Inner, pairs: list[tuple[exp.Expr, exp.Expr]]) -> list[tuple[Operator, tuple[exp.Expr, ...]]]:
    """Where a comparison is unknown although nothing is equal: right sides and conditions.

    One column:  a NULL among the values, or a NULL outside and any value at all; both reduced to the distinct rows of
    what connects the subquery.  Several columns: all are equal or unknown, at least one unknown.
    """
    if len(pairs) > 1:
        maybe = [
            exp.Or(this=_equal([p])[0], expression=exp.Or(this=_is_null(p[0]), expression=_is_null(p[1])))
            for p in pairs
        ]
        return [(_visible(inner, tuple(maybe)), tuple(exp.Paren(this=m) for m in maybe))]
    ((tested, value),) = pairs
    with_null = Inner(Filter(inner.plan, _is_null(value)), (), inner.predicates)
    any_value = Inner(inner.plan, (), inner.predicates)
    return [(_distinct(with_null), ()), (_distinct(any_value), (_is_null(tested),))]


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=nodes.grouped(value), expression=exp.Null())


def _visible(inner: Inner, more: tuple[exp.Expr, ...] = ()) -> Operator:
    """The columns of the subquery that the condition uses."""
    used = {n for p in (*inner.predicates, *more) for n in references(p)}
    wanted = tuple(n for n in inner.plan.column_names if n in used) or inner.plan.column_names[:1]
    return inner.plan if wanted == inner.plan.column_names else Project.keeping(inner.plan, wanted)


def _distinct(inner: Inner) -> Operator:
    used = {n for p in inner.predicates for n in references(p)}
    wanted = tuple(n for n in inner.plan.column_names if n in used)
    if wanted:
        return Aggregate(Project.keeping(inner.plan, wanted), wanted)
    one = f"{inner.plan.column_names[0]}_any"
    return Aggregate(Project(inner.plan, (Projection(one, exp.Literal.number(1)),)), (one,))


# ------------------------------------------------------------------------------------------------ values


def _scalar(scope: Scope, node: exp.Expr) -> exp.Expr:
    """The one value of a subquery: NULL without a row, an error with several."""
    whole = one_group(scope, bare(node))
    if whole is None:
        inner, empty = _one_row_each(scope, inner_rows(scope, node, items=False), node)
    else:
        inner, (empty,) = whole
    return with_values(scope, inner, [empty])[0]


def with_values(scope: Scope, inner: Inner, empty: list[exp.Expr]) -> list[exp.Expr]:
    """The values of the one row that a subquery has for each row of the scope's plan, which gets what they need."""
    lowering = scope.lowering
    values, there = [lowering.fresh("value") for _ in inner.values], lowering.fresh("is_there")
    keys = [n for n in inner.plan.column_names if any(n in references(p) for p in inner.predicates)]
    found = (Projection(v, e) for v, e in zip(values, inner.values, strict=True))
    shown = (*(Projection(k, col(k)) for k in keys), *found, Projection(there, exp.true()))
    scope.plan = LeftJoin(scope.plan, Project(inner.plan, shown), inner.predicates)
    return [
        col(v)
        if isinstance(e, exp.Null)
        else exp.Paren(this=exp.Case(ifs=[exp.If(this=col(there), true=col(v))], default=e))
        for v, e in zip(values, empty, strict=True)
    ]


def _one_row_each(scope: Scope, inner: Inner, node: exp.Expr) -> tuple[Inner, exp.Expr]:
    """A subquery without aggregates must have one row at most, for each row outside."""
    several = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
    text = exp.Literal.string("a scalar subquery returned more than one row: " + scope.text(node))
    failed = exp.Anonymous(this="RAISE_ERROR", expressions=[text])
    least = exp.Min(this=inner.values[0].copy())
    value = exp.Case(ifs=[exp.If(this=several, true=failed)], default=least)
    return _grouped(scope, Inner(inner.plan, (value,), inner.predicates), [], None, False), exp.Null()


def one_group(scope: Scope, query: exp.Expr) -> tuple[Inner, list[exp.Expr]] | None:
    """A subquery that is one group of all its rows: its values, and what they are over no rows."""
    from dbt_ivm.frontend.lower_aggregate import has_aggregates
    from dbt_ivm.frontend.postponed import asks_over_groups

    if not isinstance(query, exp.Select) or query.args.get("group") or query.args.get("having"):
        return None
    items = [i.unalias() for i in query.selects]
    if not has_aggregates(items) or not stands_in_conditions(query) or asks_over_groups(query):
        return None
    inner, scoped = _rows_of(scope, query)
    values = tuple(scoped.resolve(i) for i in items)
    inner = Inner(scoped.plan, values, inner.predicates)
    return _grouped(scope, inner, [], None, False), [over_no_rows(v) for v in values]


def _grouped(scope: Scope, inner: Inner, own_keys: list[exp.Expr], having: exp.Expr | None, is_grouped: bool) -> Inner:
    """The subquery's rows grouped by its own keys and by what connects it to the query around it."""
    from dbt_ivm.frontend.lower_aggregate import lower_aggregate

    lowering = scope.lowering
    connected = connect(scope, inner)
    pairs = equalities(connected.predicates, scope.plan, connected.plan)
    keys = [*(p.right for p in pairs), *own_keys]
    outputs = [("", p.right) for p in pairs] + [("", v) for v in inner.values]
    grouped = bool(keys) or is_grouped
    plan, rewritten, condition = lower_aggregate(lowering, connected.plan, keys, outputs, having, grouped)
    plan = Filter(plan, condition) if condition is not None else plan
    named = [lowering.fresh("joined") for _ in rewritten]
    plan = Project(plan, tuple(Projection(n, e) for n, (_, e) in zip(named, rewritten, strict=True)))
    same = tuple(p.kind(this=nodes.grouped(p.left), expression=col(n)) for p, n in zip(pairs, named, strict=False))
    return Inner(plan, tuple(col(n) for n in named[len(pairs) :]), same)


def connect(scope: Scope, inner: Inner) -> Inner:
    """The same subquery, connected only by equalities with one combination of inner values at most.

    Other predicates are moved inside: the subquery is joined with the distinct outer values that they use, which are
    then what it is connected by.
    """
    outside = set(scope.plan.column_names)
    told = [one_key_each(p, scope.plan, inner.plan) for p in equalities(inner.predicates, scope.plan, inner.plan)]
    pairs = [p for p in told if p]
    if len(pairs) == len(inner.predicates):
        return Inner(inner.plan, inner.values, tuple(p.kind(this=p.left, expression=p.right) for p in pairs))
    used = tuple(dict.fromkeys(n for p in inner.predicates for n in references(p) if n in outside))
    if not used:
        raise Refusal("subquery", "connected by no column of the query around it", scope.line)
    apart = {n: scope.lowering.fresh(f"given_{n}") for n in used}
    given = Project(without_values(scope.plan, used), tuple(Projection(apart[n], col(n)) for n in used))
    distinct = Aggregate(given, tuple(apart.values()))
    moved = tuple(replace_columns(p, {n: col(apart.get(n, n)) for n in references(p)}) for p in inner.predicates)
    plan = Join((distinct, inner.plan), moved)
    # null-safe: an outer row with NULL in such a column has its own combination
    same = tuple(exp.NullSafeEQ(this=col(n), expression=col(apart[n])) for n in used)
    return Inner(plan, inner.values, same)


# ------------------------------------------------------------------------------------------------ the rows inside


def inner_rows(scope: Scope, query: exp.Expr, items: bool = True) -> Inner:
    """The rows of a subquery; ``items``: its values may use columns of the query around it."""
    from dbt_ivm.frontend.lower_aggregate import has_aggregates
    from dbt_ivm.frontend.postponed import asks_over_groups

    query = bare(query)
    if not is_correlated(query):
        rows = scope.lowering.query(_without_order(query))
        return Inner(rows.plan, tuple(col(c) for _, c in rows.outputs))
    if isinstance(query, exp.Select) and stands_in_conditions(query, items):
        aggregates = query.args.get("having") is not None or has_aggregates(list(query.selects))
        is_grouped = query.args.get("group") is not None
        if not asks_over_groups(query) if is_grouped else not aggregates:  # one group of no rows is a row, too
            return _correlated(scope, query)
    return _with_given(scope, query)


def _with_given(scope: Scope, query: exp.Expr) -> Inner:
    """Any subquery: computed for the distinct values of the query around it that it uses."""
    used: dict[tuple[str, str], str] = {}
    for column in outer_columns(query):
        found = scope.find(column.table, column.name)
        if found is None or found not in scope.plan.column_names:
            detail = f"{column.sql(dialect='spark')} belongs to a query further out"
            raise Refusal("subquery", detail, line_of(column) or scope.line)
        used[(column.table, column.name)] = found
    given = given_values(scope.lowering, scope.plan, used)
    rows = scope.lowering.query(query, given)
    values, keys = rows.outputs[: -len(given.inner)], rows.outputs[-len(given.inner) :]
    # null-safe: an outer row with NULL in such a column has its own combination
    same = tuple(
        exp.NullSafeEQ(this=col(outer), expression=col(key)) for outer, (_, key) in zip(given.outer, keys, strict=True)
    )
    return Inner(rows.plan, tuple(col(c) for _, c in values), same)


def _without_order(query: exp.Expr) -> exp.Expr:
    is_limited = query.args.get("limit") is not None or query.args.get("offset") is not None
    if query.args.get("order") is not None and not is_limited:
        query = query.copy()
        query.set("order", None)
    return query


def _correlated(scope: Scope, query: exp.Select) -> Inner:
    """A SELECT that uses columns of the query around it."""
    from dbt_ivm.frontend.lower_select import group_keys

    inner, scoped = _rows_of(scope, query)
    items = [i.unalias() for i in query.selects]
    group, having = query.args.get("group"), query.args.get("having")
    values = [scoped.resolve(i) for i in items]
    inner = Inner(scoped.plan, tuple(values), inner.predicates)
    if group is None:
        return inner
    condition = scoped.resolve(having.this) if having is not None else None
    return _grouped(scope, inner, group_keys(scoped, group), condition, True)


def _rows_of(scope: Scope, query: exp.Select) -> tuple[Inner, Scope]:
    """FROM and WHERE; conditions that use outer columns are kept apart."""
    from dbt_ivm.frontend.lower_from import filtered, lower_from

    scoped = Scope(scope.lowering, line_of(query) or scope.line, scope)
    connecting = lower_from(scoped, query)
    where = query.args.get("where")
    conditions = keep_rows(scoped, where.this) if where is not None else []
    have = set(scoped.plan.column_names)
    own = [c for c in conditions if set(references(c)) <= have]
    connecting += [c for c in conditions if not set(references(c)) <= have]
    scoped.plan = filtered(scoped.plan, own)
    known = have | set(scope.plan.column_names)
    for condition in connecting:
        if not set(references(condition)) <= known:
            raise Refusal("subquery", "it uses a column of a query further out", line_of(query) or scope.line)
    return Inner(scoped.plan, (), tuple(connecting)), scoped

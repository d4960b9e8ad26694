"""Subqueries in expressions, as joins that keep the rows of the query around them.

    EXISTS (q)          as a condition SEMI, NOT EXISTS ANTI; elsewhere a mark
    x IN (q)            as a condition SEMI on x = y; elsewhere a mark, or NULL when some comparison is unknown
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
from dbt_ivm.operators.preserving import equalities


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
            inner = _inner(scope, inside.this)
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
    """A subquery inside an expression, as an expression over columns that the scope's plan has from now on."""
    if isinstance(node, exp.Exists):
        return _mark(scope, _inner(scope, node.this), ())
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
    inner = _inner(scope, node.args["query"])
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
    """TRUE with a match; NULL without one when some comparison is unknown; else FALSE."""
    inner, pairs = _compared(scope, node)
    branches = [exp.If(this=_mark(scope, inner, _equal(pairs)), true=exp.true())]
    for right, unknown in _unknown(inner, pairs):
        mark = scope.lowering.fresh("mark")
        scope.plan = Existence(scope.plan, right, (*inner.predicates, *unknown), Kind.MARK, mark)
        branches.append(exp.If(this=col(mark), true=exp.Null()))
    return exp.Paren(this=exp.Case(ifs=branches, default=exp.false()))


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
    query = node.this if isinstance(node, exp.Subquery) else node
    lowering = scope.lowering
    grouped = _grouped_inner(scope, query)
    if grouped is None:
        inner = _inner(scope, query)
        grouped = _one_row_each(scope, inner, node)
    inner, empty = grouped
    value, there = lowering.fresh("value"), lowering.fresh("is_there")
    keys = [n for n in inner.plan.column_names if any(n in references(p) for p in inner.predicates)]
    shown = (*(Projection(k, col(k)) for k in keys), Projection(value, inner.values[0]), Projection(there, exp.true()))
    scope.plan = LeftJoin(scope.plan, Project(inner.plan, shown), inner.predicates)
    if isinstance(empty, exp.Null):
        return col(value)
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=col(there), true=col(value))], default=empty))


def _one_row_each(scope: Scope, inner: Inner, node: exp.Expr) -> tuple[Inner, exp.Expr]:
    """A subquery without aggregates must have one row at most, for each row outside."""
    several = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
    text = exp.Literal.string("a scalar subquery returned more than one row: " + scope.text(node))
    failed = exp.Anonymous(this="RAISE_ERROR", expressions=[text])
    least = exp.Min(this=inner.values[0].copy())
    value = exp.Case(ifs=[exp.If(this=several, true=failed)], default=least)
    return _grouped(scope, Inner(inner.plan, (value,), inner.predicates), [], None, False), exp.Null()


def _grouped_inner(scope: Scope, query: exp.Expr) -> tuple[Inner, exp.Expr] | None:
    """A subquery that is one aggregate over all its rows: its value, and what it is over no rows."""
    from dbt_ivm.frontend.lower_aggregate import has_aggregates

    if not isinstance(query, exp.Select) or query.args.get("group") or query.args.get("having"):
        return None
    items = [i.unalias() for i in query.selects]
    if len(items) != 1 or not has_aggregates(items) or _has_more(query):
        return None
    inner, scoped = _rows_of(scope, query)
    value = scoped.resolve(items[0])
    inner = Inner(scoped.plan, (value,), inner.predicates)
    return _grouped(scope, inner, [], None, False), _over_no_rows(value)


def _over_no_rows(value: exp.Expr) -> exp.Expr:
    """The expression with its aggregates as they are over no rows."""
    from dbt_ivm.frontend.functions import is_aggregate, over_no_rows

    def empty(node: exp.Expr) -> exp.Expr:
        while isinstance(node, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
            node = node.this
        return over_no_rows(node) if is_aggregate(node) else node

    return value.copy().transform(empty)


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
    """The same subquery, connected by equalities only.

    Other predicates are moved inside: the subquery is joined with the distinct outer values that they use, which are
    then what it is connected by.
    """
    outside = set(scope.plan.column_names)
    if len(equalities(inner.predicates, scope.plan, inner.plan)) == len(inner.predicates):
        return inner
    used = tuple(dict.fromkeys(n for p in inner.predicates for n in references(p) if n in outside))
    if not used:
        raise Refusal("subquery", "connected by no column of the query around it", scope.line)
    apart = {n: scope.lowering.fresh(f"given_{n}") for n in used}
    given = Project(_without_values(scope.plan, used), tuple(Projection(apart[n], col(n)) for n in used))
    distinct = Aggregate(given, tuple(apart.values()))
    moved = tuple(replace_columns(p, {n: col(apart.get(n, n)) for n in references(p)}) for p in inner.predicates)
    plan = Join((distinct, inner.plan), moved)
    # null-safe: an outer row with NULL in such a column has its own combination
    same = tuple(exp.NullSafeEQ(this=col(n), expression=col(apart[n])) for n in used)
    return Inner(plan, inner.values, same)


def _without_values(plan: Operator, used: tuple[str, ...]) -> Operator:
    """The plan below what other subqueries added to each row, as long as it has the columns."""
    while isinstance(plan, LeftJoin) or (isinstance(plan, Existence) and plan.kind is Kind.MARK):
        if not set(used) <= set(plan.left.column_names):
            break
        plan = plan.left
    return plan


# ------------------------------------------------------------------------------------------------ the rows inside


def _has_more(query: exp.Expr) -> bool:
    return any(query.args.get(c) is not None for c in ("limit", "offset", "qualify", "with_", "distinct"))


def _inner(scope: Scope, query: exp.Expr) -> Inner:
    while isinstance(query, exp.Subquery):
        query = query.this
    if not is_correlated(query):
        rows = scope.lowering.query(_without_order(query))
        return Inner(rows.plan, tuple(col(c) for _, c in rows.outputs))
    if not isinstance(query, exp.Select) or query.args.get("with_") is not None:
        raise Refusal("subquery", scope.text(query), line_of(query) or scope.line)
    return _correlated(scope, query)


def _without_order(query: exp.Expr) -> exp.Expr:
    if query.args.get("order") is not None and query.args.get("limit") is None:
        query = query.copy()
        query.set("order", None)
    return query


def _correlated(scope: Scope, query: exp.Select) -> Inner:
    """A SELECT that uses columns of the query around it."""
    from dbt_ivm.frontend.lower_aggregate import has_aggregates
    from dbt_ivm.frontend.lower_select import group_keys

    for clause in ("limit", "offset", "qualify"):
        if query.args.get(clause) is not None:
            raise Refusal("subquery", f"{clause.upper()} in a correlated subquery", line_of(query) or scope.line)
    inner, scoped = _rows_of(scope, query)
    items = [i.unalias() for i in query.selects]
    group, having = query.args.get("group"), query.args.get("having")
    values = [scoped.resolve(i) for i in items]
    inner = Inner(scoped.plan, tuple(values), inner.predicates)
    if any(v.find(exp.Window) for v in values):
        raise Refusal("subquery", "window functions in a correlated subquery", line_of(query) or scope.line)
    if group is None and having is None and not has_aggregates(values):
        return inner
    if group is None:  # over no rows there is a row, too
        raise Refusal("subquery", scope.text(query), line_of(query) or scope.line)
    condition = scoped.resolve(having.this) if having is not None else None
    return _grouped(scope, inner, group_keys(scoped, group, values), condition, True)


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


def is_correlated(query: exp.Expr) -> bool:
    """Whether it uses a relation that it does not mention itself."""
    own = {r.alias_or_name for r in query.find_all(exp.Table, exp.Subquery, exp.Lateral, exp.Values)}
    return any(c.table and c.table not in own for c in query.find_all(exp.Column))

"""What connects a subquery with the query around it, and what of it does not matter there."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.frontend.functions import COUNTS, LISTED, is_aggregate
from dbt_ivm.frontend.grouping import grouping_sets
from dbt_ivm.types import function_names

#: Clauses that make rows of a subquery depend on each other, or that have names of their own.
APART = ("with_", "limit", "offset", "qualify", "distinct")


def outer_columns(query: exp.Expr) -> list[exp.Column]:
    """Columns of relations that neither the query mentions nor a query inside it that they stand in.

    A name may mean another relation further in: ``EXISTS (… t.a … IN (SELECT t.b FROM t))`` uses both.
    """
    return [c for c in query.find_all(exp.Column) if c.table and not _is_own(c, query)]


def _is_own(column: exp.Column, query: exp.Expr) -> bool:
    node: exp.Expr | None = column
    while node is not None and node is not query:
        node = node.parent
        if isinstance(node, exp.Select) and column.table in _names_in_from(node):
            return True
    return False


def _names_in_from(select: exp.Select) -> set[str]:
    from_ = select.args.get("from_")
    joined = [join.this for join in select.args.get("joins") or ()]
    sources = [*([from_.this] if from_ is not None else []), *joined, *(select.args.get("laterals") or ())]
    pivots = [pivot for source in sources for pivot in source.args.get("pivots") or ()]
    return {part.alias_or_name for part in (*sources, *pivots)}


def is_correlated(query: exp.Expr) -> bool:
    return bool(outer_columns(query))


def stands_in_conditions(query: exp.Expr, items: bool = True) -> bool:
    """Whether outer columns stand in WHERE and in conditions of inner joins only, or in the select list if ``items``.

    Then what the subquery has for a row outside is a join with its rows.
    """
    from dbt_ivm.frontend.lower_aggregate import has_aggregates

    if not isinstance(query, exp.Select) or any(query.args.get(c) is not None for c in APART):
        return False
    group = query.args.get("group")
    if group is not None and grouping_sets(group) is not None:
        return False
    if any(i.find(exp.Window) for i in query.selects):
        return False
    if group is not None or query.args.get("having") is not None or has_aggregates(list(query.selects)):
        items = False
    places: list[exp.Expr] = [query.args["where"]] if query.args.get("where") is not None else []
    places += [
        j.args["on"]
        for j in query.args.get("joins") or ()
        if j.args.get("on") is not None and not (j.side or j.kind in ("SEMI", "ANTI"))
    ]
    places += query.selects if items else []
    allowed = {id(c) for place in places for c in place.find_all(exp.Column) if c.parent_select is query}
    return all(id(c) in allowed for c in outer_columns(query))


def bare(query: exp.Expr) -> exp.Expr:
    while isinstance(query, exp.Subquery):
        query = query.this
    return query


def as_set(query: exp.Expr, is_tested: bool = False) -> exp.Expr:
    """The query without what does not matter to IN; nor to EXISTS, if that is all that ``is_tested``."""
    query = bare(query)
    limit = query.args.get("limit")
    some = limit is not None and isinstance(limit.expression, exp.Literal) and limit.expression.name not in ("", "0")
    drops_limit = is_tested and some and query.args.get("offset") is None
    if not isinstance(query, exp.Select) or (query.args.get("offset") is not None):
        return query
    if limit is not None and not drops_limit:
        return query
    query = query.copy()
    for clause in ("order", "limit", "distinct"):
        query.set(clause, None)
    return query


def over_no_rows(value: exp.Expr) -> exp.Expr:
    """The expression with its aggregates as they are over no rows."""

    def empty(node: exp.Expr) -> exp.Expr:
        if isinstance(node, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
            return empty(node.this)
        if function_names(node) & COUNTS:
            return exp.Literal.number(0)
        if isinstance(node, LISTED):
            return exp.Array(expressions=[])
        return exp.Null() if is_aggregate(node) else node

    return value.copy().transform(empty)

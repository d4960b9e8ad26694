"""Values that a query asks for, so that its result is not empty.

The constants of the queries are made for large data; at a small scale most of their filters let nothing through.  Rows
that are steered take such constants in the columns that the query compares with them.

Columns that a subquery relies on to find one row (the month of a date) stay as they are: a query that fails has no
result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlglot import exp

#: Column to the constants it is compared with, as DuckDB's SQL.
Wanted = Mapping[str, tuple[str, ...]]


def wanted_values(queries: Sequence[exp.Expr], columns: Collection[str]) -> Wanted:
    """Constants by column.  Columns of different tables have different names in these schemas."""
    found: dict[str, dict[str, None]] = {}
    free = set(columns).difference(*(settled_columns(query) for query in queries))
    for query in queries:
        for comparison in query.find_all(exp.EQ, exp.In, exp.Between):
            column, constants = _read(comparison)
            if column in free:
                found.setdefault(column, {}).update((c.sql(dialect="duckdb"), None) for c in constants)
    return {column: tuple(constants) for column, constants in found.items() if constants}


def settled_columns(query: exp.Expr) -> frozenset[str]:
    """Columns in scalar subqueries that are not aggregates."""
    found: set[str] = set()
    for subquery in query.find_all(exp.Subquery):
        select = subquery.this
        scalar = isinstance(subquery.parent, (exp.Condition, exp.Alias)) and not isinstance(subquery.parent, exp.In)
        if scalar and isinstance(select, exp.Select) and not any(e.find(exp.AggFunc) for e in select.selects):
            found |= {column.name.lower() for column in select.find_all(exp.Column)}
    return frozenset(found)


def _read(comparison: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """The only column of one side, which may be inside a function, and the constants on the other."""
    if isinstance(comparison, exp.EQ):
        side, other = comparison.left, comparison.right
        side, others = (other, [side]) if _is_constant(side) else (side, [other])
    elif isinstance(comparison, exp.In):
        side, others = comparison.this, comparison.expressions
    else:
        side, others = comparison.this, [comparison.args["low"], comparison.args["high"]]
    names = {column.name.lower() for column in side.find_all(exp.Column)}
    return names.pop() if len(names) == 1 else "", [o for o in others if _is_constant(o)]


def _is_constant(value: exp.Expr) -> bool:
    return value.find(exp.Column, exp.Query, exp.Null) is None

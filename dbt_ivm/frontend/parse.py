"""SQL text to a syntax tree, with errors that carry the position."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_ivm.dialect import SparkFour
from dbt_ivm.errors import Refusal, UserError


def parse(sql: str) -> exp.Query:
    """The single query in the text.

    Raises:
        UserError: there is no query, or more than one statement.
        Refusal: the parser does not know the syntax; Spark may, so the model can still be rebuilt in full.
    """
    try:
        statements = [s for s in sqlglot.parse(sql, read=SparkFour) if s is not None]
    except SqlglotError as error:
        first = (getattr(error, "errors", None) or [{}])[0]
        detail = str(first.get("description") or error).split("\n")[0]
        raise Refusal("unparsable", detail, first.get("line")) from error
    if len(statements) != 1:
        raise UserError("IVM_NOT_ONE_QUERY", f"a model must be one SELECT, found {len(statements)} statements")
    query = statements[0]
    while isinstance(query, (exp.Subquery, exp.Paren)):
        _refuse_clauses_around(query)
        query = query.this
    if isinstance(query, exp.Command):
        raise Refusal("unparsable", query.sql(dialect="spark")[:60])
    if not isinstance(query, exp.Query):
        raise UserError("IVM_NOT_A_QUERY", f"a model must be a SELECT, found {query.key.upper()}")
    return query


def _refuse_clauses_around(query: exp.Expr) -> None:
    """(SELECT …) LIMIT n, WITH c AS (…) (SELECT …): what stands around the parentheses belongs to the query."""
    for clause in ("limit", "offset"):
        if query.args.get(clause) is not None:
            raise Refusal("limit", query.args[clause].sql(dialect="spark").strip(), line_of(query))
    if query.args.get("with_") is not None:
        raise Refusal("unparsable", "WITH before a query in parentheses", line_of(query))


def line_of(node: exp.Expr) -> int | None:
    """The first known line below a node."""
    for part in node.walk():
        line = part.meta.get("line")
        if line is not None:
            return int(line)
    return None

"""SQL text to a syntax tree, with errors that carry the position."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_ivm.dialect import OPERATORS, SparkFour
from dbt_ivm.errors import Refusal, UserError

#: Stands for a query in parentheses that has clauses of its own around them.
INSIDE = "__ivm_inside"


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
    for node in query.walk():
        node.comments = None  # what they say is no part of the definition
    while isinstance(query, (exp.Subquery, exp.Paren)):
        query = query.this if _is_bare(query) else _selected(query)
    if isinstance(query, exp.Command):
        raise Refusal("unparsable", query.sql(dialect="spark")[:60])
    if not isinstance(query, exp.Query):
        raise UserError("IVM_NOT_A_QUERY", f"a model must be a SELECT, found {query.key.upper()}")
    for node in list(query.find_all(exp.ParseJSON, exp.Struct)):
        call = _as_written(node)
        if call is not None:
            node.replace(call)
    for node in query.find_all(exp.Filter):
        call = node.this
        if isinstance(call, exp.Anonymous) and any(isinstance(e, exp.Distinct) for e in call.expressions):
            raise Refusal("aggregate_function", f"FILTER on {call.sql(dialect='spark')}"[:60], line_of(node))
    for node in list(query.walk()):
        if _reads_otherwise(node):
            together = exp.Paren()
            node.replace(together)
            together.set("this", node)
    return query


def _reads_otherwise(node: exp.Expr) -> bool:
    """What the parser writes as an operator, whose operands others around it would take.

    ts - INTERVAL 1 DAY 2 HOURS   →   ts - (INTERVAL 1 DAY + INTERVAL 2 HOURS)
    LIKE(a, b) = c                →   (a LIKE b) = c
    """
    if isinstance(node.parent, exp.Paren):
        return False
    if _is_interval(node) and isinstance(node, exp.Add):
        return not _is_interval(node.parent)
    return str(node.meta.get(SparkFour.ORIGINAL_NAME_META_KEY, "")).lower() in OPERATORS


def _is_interval(node: exp.Expr | None) -> bool:
    """An interval of one or more units."""
    if isinstance(node, exp.Add):
        return _is_interval(node.left) and _is_interval(node.right)
    return isinstance(node, exp.Interval)


def _as_written(node: exp.Expr) -> exp.Expr | None:
    """Functions that the parser knows and its Spark dialect writes otherwise: names of fields keep their letters."""
    if isinstance(node, exp.ParseJSON):
        return exp.Anonymous(this="PARSE_JSON", expressions=[node.this])
    fields = [(f.name, f.expression) for f in node.expressions if isinstance(f, exp.PropertyEQ) and f.name]
    if not fields or len(fields) < len(node.expressions):
        return None
    named = [part for name, value in fields for part in (exp.Literal.string(name), value)]
    return exp.Anonymous(this="NAMED_STRUCT", expressions=named)


def _is_bare(query: exp.Expr) -> bool:
    """Parentheses and nothing else."""
    return not any(value for name, value in query.args.items() if name != "this")


def _selected(query: exp.Expr) -> exp.Select:
    """(SELECT …) ORDER BY x LIMIT n with its clauses around the parentheses."""
    around = exp.Select(expressions=[exp.Star()])
    for name, value in query.args.items():
        if name != "this" and value:
            around.set(name, value)
    return around.from_(exp.Subquery(this=query.this, alias=exp.TableAlias(this=exp.to_identifier(INSIDE))))


def inside(query: exp.Expr) -> exp.Query | None:
    """The query in parentheses whose clauses stand around them."""
    from_ = query.args.get("from_")
    within = from_.this if from_ is not None else None
    return within.this if isinstance(within, exp.Subquery) and within.alias == INSIDE else None


def line_of(node: exp.Expr) -> int | None:
    """The first known line below a node."""
    for part in node.walk():
        line = part.meta.get("line")
        if line is not None:
            return int(line)
    return None

"""Which IN stands below NOT: only there Spark tells what is unknown from what is not among the values.

Found while a whole query is in one piece.  Clauses are taken apart and copied later, and a copy has no NOT above it.
"""

from __future__ import annotations

from sqlglot import exp

NEGATED = "ivm_negated"


def mark_negated(query: exp.Query) -> None:
    for node in query.find_all(exp.In):
        if node.args.get("query") is not None:
            node.meta[NEGATED] = _below_not(node)


def is_negated(node: exp.Expr) -> bool:
    return bool(node.meta.get(NEGATED))


def _below_not(node: exp.Expr) -> bool:
    """Whether an odd number of NOTs stands above, which Spark moves down through AND and OR."""
    negated, above = False, node.parent
    while isinstance(above, (exp.Paren, exp.Not, exp.And, exp.Or)):
        negated ^= isinstance(above, exp.Not)
        above = above.parent
    return negated

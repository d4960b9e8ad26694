"""ORDER BY k LIMIT n OFFSET o: the rows whose place in the order is above o and at most o + n.

    σ(o < place ≤ o + n) (ω row_number() OVER (ORDER BY k) (R))

Rows that k does not tell apart are put in order by the other columns (``settle_ties.py``): one of the answers that the
query allows, and always the same one.  Without ORDER BY the engine may keep any rows, so there is no rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.lower import Lowering, Rows
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.operators import Filter, WindowFunction, Windowing, col

ORDER_NOTE = "ORDER BY is ignored: a table has no order"


@dataclass(frozen=True)
class Limit:
    """Rows at places after ``skipped``, ``count`` of them (None: all that follow)."""

    skipped: int
    count: int | None


def limit_of(lowering: Lowering, query: exp.Expr) -> Limit | None:
    """The query's LIMIT and OFFSET; what is ordered without them is noted."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    if limit is None and offset is None:
        for clause in ("order", "sort", "cluster", "distribute"):
            if query.args.get(clause) is not None and ORDER_NOTE not in lowering.notes:
                lowering.notes.append(ORDER_NOTE)
        return None
    if query.args.get("order") is None:
        given = [clause.sql(dialect="spark").strip() for clause in (limit, offset) if clause is not None]
        raise Refusal("limit", " ".join(given), line_of(query))
    return Limit(_number(offset) if offset is not None else 0, _number(limit) if limit is not None else None)


def _number(clause: exp.Expr) -> int:
    number = clause.args.get("expression")
    if not isinstance(clause, (exp.Limit, exp.Offset)) or not isinstance(number, exp.Literal) or not number.is_int:
        raise Refusal("limit_number", clause.sql(dialect="spark").strip(), line_of(clause))
    return int(number.name)


@dataclass(frozen=True)
class OrderKey:
    """What one item of ORDER BY orders by: an output column, or an expression of its own."""

    ordered: exp.Ordered
    output: str = ""

    def by(self, column: str) -> exp.Ordered:
        """The same order by a column of the plan."""
        return exp.Ordered(
            this=col(column), desc=self.ordered.args.get("desc"), nulls_first=self.ordered.args.get("nulls_first")
        )


def order_keys(query: exp.Expr, items: list[tuple[str, exp.Expr | None]]) -> list[OrderKey]:
    """ORDER BY over the named items of the select list; their names come before those of columns below.

    Args:
        items: output names, with their expressions where ORDER BY may also use other expressions.
    """
    keys: list[OrderKey] = []
    made_of = dict(reversed(items))
    for ordered in query.args["order"].expressions:
        key = ordered.this
        if isinstance(key, exp.Var) and key.name.upper() == "ALL":
            keys += [OrderKey(ordered, name) for name, _ in items]
            continue
        if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(items):
            keys.append(OrderKey(ordered, items[int(key.name) - 1][0]))
            continue
        if isinstance(key, exp.Column) and not key.table and key.name in made_of:
            keys.append(OrderKey(ordered, key.name))
            continue
        same = next((name for name, expression in items if expression == key), "")
        if same:
            keys.append(OrderKey(ordered, same))
            continue
        if any(expression is None for expression in made_of.values()):
            raise Refusal("limit_number", "ORDER BY " + ordered.sql(dialect="spark"), line_of(query))
        spelled = ordered.copy()
        spelled.set("this", without_aliases(spelled.this, made_of))
        keys.append(OrderKey(spelled))
    return keys


def without_aliases(key: exp.Expr, made_of: Mapping[str, exp.Expr | None]) -> exp.Expr:
    """A key of ORDER BY over the columns below the select list."""

    def replaced(node: exp.Expr) -> exp.Expr:
        expression = made_of.get(node.name) if isinstance(node, exp.Column) and not node.table else None
        if expression is None:
            return node
        return expression.copy() if node.parent is None else exp.Paren(this=expression.copy())

    return key.transform(replaced)


def keep_places(lowering: Lowering, rows: Rows, limit: Limit, order: list[exp.Ordered]) -> Rows:
    """The rows at the places that the limit keeps."""
    place = lowering.fresh("place")
    call = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=order), over="OVER")
    plan = Windowing(rows.plan, (), (WindowFunction(place, call, "int"),))
    conditions: list[exp.Expr] = []
    if limit.count is not None:
        conditions.append(exp.LTE(this=col(place), expression=exp.Literal.number(limit.skipped + limit.count)))
    if limit.skipped or not conditions:
        conditions.append(exp.GT(this=col(place), expression=exp.Literal.number(limit.skipped)))
    return Rows(Filter(plan, exp.and_(*conditions)), rows.outputs)


def limited(lowering: Lowering, query: exp.Expr, rows: Rows) -> Rows:
    """A query in parentheses, or a set operation, with its own ORDER BY and LIMIT: these see its output names only."""
    limit = limit_of(lowering, query)
    if limit is None:
        return rows
    columns = dict(reversed(rows.outputs))
    keys = order_keys(query, [(name, None) for name in rows.visible])
    return keep_places(lowering, rows, limit, [key.by(columns[key.output]) for key in keys])

"""The few SQL nodes that planning makes by the thousand, built directly instead of parsed or checked each time; and
copies of expressions."""

from __future__ import annotations

from functools import cache

from sqlglot import exp


def name(text: str) -> exp.Identifier:
    """A quoted identifier."""
    return exp.Identifier(this=text, quoted=True)


def column(text: str, table: str | None = None) -> exp.Column:
    """A column under its quoted name, of a table under its alias."""
    if table is None:
        return exp.Column(this=name(text))
    return exp.Column(this=name(text), table=exp.Identifier(this=table, quoted=False))


def column_name(node: exp.Column) -> str:
    """The name of a column, without the checks for other kinds of nodes."""
    identifier = node.args["this"]
    return identifier.args["this"] if isinstance(identifier, exp.Identifier) else str(node.name)


def alias(text: str) -> exp.TableAlias:
    """The alias of a table or subquery."""
    return exp.TableAlias(this=exp.Identifier(this=text, quoted=False))


def aliased(query: exp.Query, text: str) -> exp.Subquery:
    """A query in FROM."""
    return exp.Subquery(this=query, alias=alias(text))


def all_of(conditions: list[exp.Expr]) -> exp.Expr:
    """The conjunction of one or more conditions, which are placed, not copied."""
    placed = [exp.Paren(this=c) if isinstance(c, exp.Connector) and len(conditions) > 1 else c for c in conditions]
    result = placed[0]
    for condition in placed[1:]:
        result = exp.And(this=result, expression=condition)
    return result


def cast(value: exp.Expr, kind: str) -> exp.Cast:
    return exp.Cast(this=value, to=_data_type(kind).copy())


def null(kind: str) -> exp.Expr:
    """NULL of a type; of a nested type as it is, because names of fields may be anything."""
    return exp.Null() if not kind or "<" in kind or kind.startswith("interval") else cast(exp.Null(), kind)


@cache
def _data_type(kind: str) -> exp.DataType:
    return exp.DataType.build(kind, dialect="spark")


def text(value: str) -> exp.Expr:
    """A text as data: Spark would put the value of a setting where a statement says ``${name}``.

    >>> text("costs ${x}").sql("spark")
    "CONCAT('costs $', '{x}')"
    """
    parts = value.split("${")
    if len(parts) == 1:
        return exp.Literal.string(value)
    pieces = [("{" if i else "") + part + ("$" if i < len(parts) - 1 else "") for i, part in enumerate(parts)]
    return exp.Concat(expressions=[exp.Literal.string(p) for p in pieces])


def grouped(expression: exp.Expr) -> exp.Expr:
    """A copy that can stand inside another expression."""
    binary = (exp.Binary, exp.Not, exp.Between, exp.In, exp.Is)
    copy = copied(expression)
    return exp.Paren(this=copy) if isinstance(copy, binary) else copy


def copied(expression: exp.Expr) -> exp.Expr:
    """A copy; most expressions are plain columns, which are cheaper to make anew."""
    table = expression.args.get("table")
    if not isinstance(expression, exp.Column) or not isinstance(table, exp.Identifier) or expression.args.get("db"):
        return expression.copy()
    return exp.Column(this=_same_name(expression.args["this"]), table=_same_name(table))


def _same_name(name: exp.Identifier) -> exp.Identifier:
    return exp.Identifier(this=name.args["this"], quoted=name.args.get("quoted"))


def replace_columns(expression: exp.Expr, made_of: dict[str, exp.Expr]) -> exp.Expr:
    """A copy of the expression with each column replaced by what it is made of."""

    def substitute(node: exp.Expr) -> exp.Expr:
        return grouped(made_of[node.name]) if isinstance(node, exp.Column) else node

    return expression.transform(substitute)


def conjuncts(predicate: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND connects."""
    return list(predicate.flatten()) if isinstance(predicate, exp.And) else [predicate]

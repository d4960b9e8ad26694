"""MERGE statements: target ``t``, source ``s``, and small builders for their clauses."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import nodes
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.comparable import same

TARGET, SOURCE = "t", "s"


def target(column: str) -> exp.Column:
    return nodes.column(column, TARGET)


def source(column: str) -> exp.Column:
    return nodes.column(column, SOURCE)


def number(value: int) -> exp.Expr:
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))


def equal(left: exp.Expr, right: exp.Expr | int) -> exp.Expr:
    return exp.EQ(this=left, expression=number(right) if isinstance(right, int) else right)


def null_safe_equal(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.NullSafeEQ(this=left, expression=right)


def differs(left: exp.Expr, right: exp.Expr, kind: str) -> exp.Expr:
    """Whether two values of a type are not exactly the same."""
    return exp.Not(this=exp.Paren(this=same(left, right, kind)))


def same_key(key: str, kind: str) -> exp.Expr:
    """Whether target and source have the same value of a key column, as SQL compares keys.

    Delta's MERGE cannot resolve a comparison of two columns of type char(n), which Spark pads; a cast text is not
    padded again.  The planner takes char(n) for a string.
    """
    if kind == "string":
        return null_safe_equal(target(key), nodes.cast(source(key), "string"))
    return same(target(key), source(key), kind, exact=False)


def is_of_build(state: exp.Expr, epoch: int) -> exp.Expr:
    """Whether a state row's text is of this build of the table; numbers of refreshes go on across rebuilds."""
    path = exp.JSONPath(expressions=[exp.JSONPathRoot(), exp.JSONPathKey(this="epoch")])
    found = exp.JSONExtractScalar(this=state, expression=path)
    return null_safe_equal(found, exp.Literal.string(str(epoch)))


def case(condition: exp.Expr, then: exp.Expr, otherwise: exp.Expr | None = None) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=otherwise)


def coalesce(*values: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=values[0], expressions=list(values[1:]))


def fail(message: str, *details: exp.Expr) -> exp.Expr:
    """An expression that aborts the statement: nothing is written."""
    text: exp.Expr = exp.Literal.string(message)
    if details:
        parts = [text, *(exp.func("TO_JSON", exp.func("NAMED_STRUCT", *_named(details))),)]
        text = exp.Anonymous(this="CONCAT", expressions=parts)
    return exp.Anonymous(this="RAISE_ERROR", expressions=[text])


def _named(details: tuple[exp.Expr, ...]) -> list[exp.Expr]:
    return [part for d in details for part in (exp.Literal.string(d.name), d.copy())]


def when_matched(condition: exp.Expr | None, then: exp.Expr) -> exp.When:
    return exp.When(matched=True, source=False, condition=condition, then=then)


def when_not_matched(condition: exp.Expr | None, then: exp.Expr) -> exp.When:
    return exp.When(matched=False, source=False, condition=condition, then=then)


def update(values: dict[str, exp.Expr]) -> exp.Expr:
    return exp.Update(expressions=[exp.EQ(this=nodes.column(n), expression=v)
                                   for n, v in values.items()])  # fmt: skip


def insert(values: dict[str, exp.Expr]) -> exp.Expr:
    return exp.Insert(
        this=exp.Tuple(expressions=[nodes.column(n) for n in values]),
        expression=exp.Tuple(expressions=list(values.values())),
    )


def delete() -> exp.Expr:
    return exp.Var(this="DELETE")


def merge_into(relation: RelationName, rows: exp.Query, on: list[exp.Expr], whens: list[exp.When]) -> exp.Merge:
    table = relation.table()
    table.set("alias", nodes.alias(TARGET))
    return exp.Merge(
        this=table,
        using=nodes.aliased(rows, SOURCE),
        on=exp.and_(*on),
        whens=exp.Whens(expressions=whens),
    )

"""MERGE statements: target ``t``, source ``s``, and small builders for their clauses."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.catalog.relation_name import RelationName

TARGET, SOURCE = "t", "s"


def target(column: str) -> exp.Column:
    return exp.column(exp.to_identifier(column, quoted=True), table=TARGET)


def source(column: str) -> exp.Column:
    return exp.column(exp.to_identifier(column, quoted=True), table=SOURCE)


def number(value: int) -> exp.Expression:
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))


def equal(left: exp.Expression, right: exp.Expression | int) -> exp.Expression:
    return exp.EQ(this=left, expression=number(right) if isinstance(right, int) else right)


def null_safe_equal(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return exp.NullSafeEQ(this=left, expression=right)


def differs(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return exp.Not(this=exp.Paren(this=null_safe_equal(left, right)))


def case(condition: exp.Expression, then: exp.Expression, otherwise: exp.Expression | None = None) -> exp.Expression:
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=otherwise)


def coalesce(*values: exp.Expression) -> exp.Expression:
    return exp.Coalesce(this=values[0], expressions=list(values[1:]))


def fail(message: str, *details: exp.Expression) -> exp.Expression:
    """An expression that aborts the statement: nothing is written."""
    text: exp.Expression = exp.Literal.string(message)
    if details:
        parts = [text, *(exp.func("TO_JSON", exp.func("NAMED_STRUCT", *_named(details))),)]
        text = exp.Anonymous(this="CONCAT", expressions=parts)
    return exp.Anonymous(this="RAISE_ERROR", expressions=[text])


def _named(details: tuple[exp.Expression, ...]) -> list[exp.Expression]:
    return [part for d in details for part in (exp.Literal.string(d.name), d.copy())]


def when_matched(condition: exp.Expression | None, then: exp.Expression) -> exp.When:
    return exp.When(matched=True, source=False, condition=condition, then=then)


def when_not_matched(condition: exp.Expression | None, then: exp.Expression) -> exp.When:
    return exp.When(matched=False, source=False, condition=condition, then=then)


def update(values: dict[str, exp.Expression]) -> exp.Expression:
    return exp.Update(expressions=[exp.EQ(this=exp.column(exp.to_identifier(n, quoted=True)), expression=v)
                                   for n, v in values.items()])  # fmt: skip


def insert(values: dict[str, exp.Expression]) -> exp.Expression:
    return exp.Insert(
        this=exp.Tuple(expressions=[exp.column(exp.to_identifier(n, quoted=True)) for n in values]),
        expression=exp.Tuple(expressions=list(values.values())),
    )


def delete() -> exp.Expression:
    return exp.Var(this="DELETE")


def merge_into(
    relation: RelationName, rows: exp.Query, on: list[exp.Expression], whens: list[exp.When]
) -> exp.Merge:
    table = relation.table()
    table.set("alias", exp.TableAlias(this=exp.to_identifier(TARGET)))
    return exp.Merge(
        this=table,
        using=exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier(SOURCE))),
        on=exp.and_(*on),
        whens=exp.Whens(expressions=whens),
    )

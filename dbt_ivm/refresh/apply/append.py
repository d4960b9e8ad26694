"""Rows are only added: insert them through the state partition, so that the view itself is not scanned.

A keyed view relies on declared keys.  A MERGE by key would notice a second row with the same key; an append does
not look, so the statement checks the changed tables' keys instead and aborts before anything is written.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.analysis.scans import scans_of
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Key
from dbt_ivm.delta.weights import as_bag, net, restrict_to
from dbt_ivm.errors import InternalError
from dbt_ivm.operators import Aggregate, Field, Filter, Measure, Operator, Project, Projection, Scan, col
from dbt_ivm.refresh.apply.context import DUPLICATE, Applied, ApplyContext
from dbt_ivm.render.merge import (
    case,
    equal,
    merge_into,
    number,
    source,
    target,
    when_not_matched,
)
from dbt_ivm.storage.layout import Shape

EXAMPLE = f"{names.PREFIX}example"


def append(ctx: ApplyContext) -> Applied:
    keyed = ctx.layout.shape is Shape.KEYED
    change = ctx.required_change
    rows = Project.keeping(net(change), ctx.layout.stored) if keyed else as_bag(change)
    data = ctx.query(rows)
    columns = ctx.layout.stored
    if not keyed:
        data, columns = numbered(data, columns), (*columns, names.ROW)
    using = ctx.with_state_row(
        data, columns, checked_seq(ctx, nodes.cast(number(ctx.seq), "bigint")) if keyed else None
    )
    on = [equal(target(names.PART), names.STATE_PART), equal(source(names.PART), names.STATE_PART)]
    whens = [
        ctx.compare_and_set(),
        ctx.state_must_exist(),
        when_not_matched(None, ctx.inserted({c: source(c) for c in columns})),
    ]
    return Applied("append", merge_into(ctx.storage, using, on, whens), rows)


def numbered(data: exp.Query, columns: tuple[str, ...]) -> exp.Query:
    """Each row with a number that is unique within the statement."""
    rows = exp.select(*(nodes.column(c) for c in columns))
    number_of = exp.Anonymous(this="MONOTONICALLY_INCREASING_ID")
    return rows.select(exp.alias_(number_of, names.ROW, quoted=True)).from_(nodes.aliased(data, "n"))


def checked_seq(ctx: ApplyContext, value: exp.Expr) -> exp.Expr:
    """The sequence number, or an error naming a key that now occurs twice."""
    for key, query in double_keys(ctx):
        example = exp.Subquery(this=query)
        value = case(exp.Is(this=example, expression=exp.Null()), value, duplicate(key, example.copy()))
    return value


def duplicate(key: str, example: exp.Expr) -> exp.Expr:
    """The error that names a key and a value of it."""
    message = exp.Anonymous(this="CONCAT", expressions=[exp.Literal.string(f"{DUPLICATE}{key}: "), example])
    return exp.Anonymous(this="RAISE_ERROR", expressions=[message])


def double_keys(ctx: ApplyContext) -> list[tuple[str, exp.Select]]:
    """Per key that the view relies on and that may have gained values: a query for one that now occurs twice."""
    found = []
    for name, key in ctx.layout.relied_on:
        if ctx.deltas.window(name) is not None and key.origin != "storage":  # what this package keeps needs no proof
            found.append((f"{name} {key}", _double_key(ctx, name, key)))
    return found


def _changed_keys(ctx: ApplyContext, name: RelationName, key: tuple[Field, ...]) -> Operator:
    """The change of a table, as key columns and weight."""
    for scan in scans_of(ctx.root, name):
        in_plan = {f.column.lower(): f.name for f in scan.fields}
        if all(f.column.lower() in in_plan for f in key):
            change = ctx.deltas.delta_of(scan)
            assert change is not None
            columns = tuple(Projection(f.name, col(in_plan[f.column.lower()])) for f in key)
            return Project(change, (*columns, Projection(names.WEIGHT, col(names.WEIGHT))))
    raise InternalError(f"the view relies on a key of {name} whose columns it does not read")


def _double_key(ctx: ApplyContext, name: RelationName, key: Key) -> exp.Select:
    """One row: an added key that the table now holds more than once, or NULL.

    The keys come from the same netted change as the rows, so that the engine reads the feed once.
    """
    fields = tuple(Field(f"key_{i}", c) for i, c in enumerate(key.columns, 1))
    columns = tuple(f.name for f in fields)
    changed = net(_changed_keys(ctx, name, fields))
    added = Filter(changed, exp.GT(this=col(names.WEIGHT), expression=number(0)))
    rows = restrict_to(Scan(name, fields, ctx.deltas.version(name)), added, columns)
    counted = Aggregate(rows, columns, (Measure("rows", exp.Count(this=exp.Star()), "bigint"),))
    double = Filter(counted, exp.GT(this=col("rows"), expression=number(1)))
    query = ctx.query(Project.keeping(double, columns))
    found = nodes.aliased(query, "double")
    struct = exp.Anonymous(
        this="NAMED_STRUCT",
        expressions=[p for f in fields for p in (exp.Literal.string(f.column), col(f.name))],
    )
    example = exp.Max(this=exp.Anonymous(this="TO_JSON", expressions=[struct]))
    return exp.Select(expressions=[exp.Alias(this=example, alias=nodes.name(EXAMPLE))]).from_(found, copy=False)

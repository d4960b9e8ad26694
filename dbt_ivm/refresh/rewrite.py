"""Full refresh: the storage table replaced in one commit, data and state row together."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.delta.context import DeltaContext
from dbt_ivm.refresh.apply.append import numbered
from dbt_ivm.refresh.view import CompiledView
from dbt_ivm.render.merge import number
from dbt_ivm.render.query import render_query, sql_text
from dbt_ivm.storage.delta_format import TableOptions, create_clause
from dbt_ivm.storage.layout import Shape


def rewrite(
    view: CompiledView,
    storage: RelationName,
    versions: Mapping[RelationName, int | None],
    seq: int,
    state: str,
    table: TableOptions,
) -> str:
    """CREATE OR REPLACE TABLE … AS the rows at the pinned versions, then the state row."""
    columns = view.layout.stored
    data = _data(view, versions)
    if view.layout.shape is Shape.BAG:
        data, columns = numbered(data, columns), (*columns, names.ROW)
    rows = exp.select(*(_stored(view, c) for c in columns)).from_(nodes.aliased(data, "d"))
    rows = _with_bookkeeping(rows, nodes.null("string"), seq, names.DATA_PART)
    nulls = exp.select(*(exp.alias_(exp.Null(), c, quoted=True) for c in columns))
    last = _with_bookkeeping(nulls, exp.Literal.string(state), seq, names.STATE_PART)
    return f"{create_clause(storage, table)}\nAS\n{sql_text(exp.union(rows, last, distinct=False))}"


def _stored(view: CompiledView, column: str) -> exp.Expr:
    """Texts that rows are found by are strings: MERGE cannot resolve char(n), which Spark pads as it reads."""
    value = nodes.column(column)
    if column not in view.layout.identity or view.layout.types.get(column) != "string":
        return value
    return exp.alias_(nodes.cast(value, "string"), column, quoted=True)


def preview(view: CompiledView, versions: Mapping[RelationName, int | None]) -> str:
    """The facade over the rows a rewrite would store, without a storage table: for the engine to analyse."""
    rows = exp.select("*", exp.alias_(number(names.DATA_PART), names.PART, quoted=True)).from_(
        nodes.aliased(_data(view, versions), "d")
    )
    return sql_text(view.facade_select(nodes.aliased(rows, "stored")))


def _data(view: CompiledView, versions: Mapping[RelationName, int | None]) -> exp.Query:
    if view.layout.rows is not None:
        return render_query(DeltaContext({}, versions).post_of(view.layout.rows))
    text = view.sql.strip().rstrip(";")  # the user's own text: it may be SQL that only Spark can parse
    relation = exp.Var(this=f"(\n{text}\n) AS q")
    shown = [nodes.column(c, "q") for c in view.layout.stored]
    return exp.select(*shown).from_(relation)


def _with_bookkeeping(select: exp.Select, state: exp.Expr, seq: int, part: int) -> exp.Select:
    return select.select(
        exp.alias_(state, names.STATE, quoted=True),
        exp.alias_(nodes.cast(number(seq), "bigint"), names.SEQ, quoted=True),
        exp.alias_(number(part), names.PART, quoted=True),
    )

"""Queries that find what breaks a declared key: one text for the generic tests and for the materialization.

``rows`` and ``referenced`` are what stands after FROM: a table (at a version), or the subquery that dbt makes of a
test's ``where``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.catalog.tables import Table
from dbt_ivm.delta.touched import is_known, is_replaced
from dbt_ivm.delta.weights import net
from dbt_ivm.operators import (
    Aggregate,
    Field,
    Filter,
    Measure,
    Operator,
    Project,
    Projection,
    ScanChanges,
    ScanValues,
    col,
)
from dbt_ivm.render.query import as_text, render_query

ROWS, KEY = "n_rows", "replaced"


def repeated_keys(rows: exp.Expr, columns: tuple[str, ...], nulls: bool) -> exp.Select:
    """Each key that more than one row has, with their number (NULL counts as a value).

    Args:
        nulls: whether a NULL in the key is a violation by itself, as of a primary key.
    """
    keys = [nodes.column(c) for c in columns]
    count = exp.Count(this=exp.Star())
    broken: list[exp.Expr] = [exp.GT(this=count.copy(), expression=exp.Literal.number(1))]
    if nulls:
        broken += [exp.Is(this=k.copy(), expression=exp.Null()) for k in keys]
    select = exp.Select(expressions=[*keys, exp.Alias(this=count, alias=nodes.name(ROWS))])
    select = select.from_(rows, copy=False).group_by(*(k.copy() for k in keys), copy=False)
    return select.having(exp.or_(*broken), copy=False)


def dangling_rows(rows: exp.Expr, columns: tuple[str, ...], referenced: exp.Expr, keys: tuple[str, ...]) -> exp.Select:
    """The rows whose reference, without a NULL in it, leads to no row."""
    known = [exp.Not(this=exp.Is(this=nodes.column(c, "r"), expression=exp.Null())) for c in columns]
    same = [
        exp.EQ(this=nodes.column(c, "r"), expression=nodes.column(k, "s")) for c, k in zip(columns, keys, strict=True)
    ]
    every = exp.Column(this=exp.Star(), table=exp.to_identifier("r"))
    select = exp.Select(expressions=[every]).from_(_named(rows, "r"), copy=False)
    select.append("joins", exp.Join(this=_named(referenced, "s"), side="LEFT", kind="ANTI", on=exp.and_(*same)))
    return select.where(*known, copy=False)


def replaced_keys(table: Table, keys: tuple[str, ...], first: int, last: int) -> exp.Query:
    """FK-Guard: keys (as JSON) of which rows were both removed and inserted between two versions, net of all columns.

    Rows that leave and come back as they were do not count, nor do keys with a NULL: nobody references them.
    """
    fields = tuple(Field(f"c{i}", c.name, c.type) for i, c in enumerate(table.columns, 1))
    by_column = {f.column.lower(): f.name for f in fields}
    key = tuple(by_column[k.lower()] for k in keys)
    change = net(ScanChanges(table.name, fields, first, last, table.live))
    known = Filter(change, exp.and_(*(is_known(k) for k in key)))
    low = Measure(names.LOW, exp.Min(this=col(names.WEIGHT)), "bigint")
    high = Measure(names.HIGH, exp.Max(this=col(names.WEIGHT)), "bigint")
    found = Filter(Aggregate(known, key, (low, high)), is_replaced())
    types = {f.name: f.type for f in fields}
    texts = [as_text(col(n), types[n]) for n in key]
    listed = exp.Anonymous(this="TO_JSON", expressions=[exp.Array(expressions=texts)])
    return render_query(Project(found, (Projection(KEY, listed),)))


def known_keys(table: Table, keys: tuple[str, ...], rows: Sequence[Mapping[str, Any]]) -> Operator | None:
    """The fetched keys as literals.

    They do not stay a query: Delta 4.4 answers wrongly when a statement reads the feed of a table beside the table as
    it is, and a row may well reference its own table.
    """
    fields = tuple(Field(k, k, table.column(k).type) for k in keys)
    found = tuple(sorted((tuple(json.loads(row[KEY])) for row in rows), key=repr))
    return ScanValues(fields, found, f"Replaced keys of {table.name}", (table.name, None)) if found else None


def referenced(
    replaced: Operator | None, keys: tuple[str, ...], rows: exp.Expr, columns: tuple[str, ...]
) -> exp.Select:
    """Those of the keys that some row references, and how many do; without keys there are none."""
    shown: list[exp.Expr] = [nodes.column(k, "s") for k in keys]
    count = exp.Alias(this=exp.Count(this=exp.Star()), alias=nodes.name("referenced_by"))
    if replaced is None:
        none = [exp.Alias(this=exp.Null(), alias=nodes.name(k)) for k in keys]
        return exp.Select(expressions=none).where(exp.false(), copy=False)
    same = [
        exp.EQ(this=nodes.column(c, "r"), expression=nodes.column(k, "s")) for c, k in zip(columns, keys, strict=True)
    ]
    select = exp.Select(expressions=[*shown, count]).from_(_named(rows, "r"), copy=False)
    select.append("joins", exp.Join(this=nodes.aliased(render_query(replaced), "s"), kind="INNER", on=exp.and_(*same)))
    return select.group_by(*(k.copy() for k in shown), copy=False)


def _named(rows: exp.Expr, alias: str) -> exp.Expr:
    """The relation under an alias; a subquery of dbt's has one already."""
    relation = rows.copy()
    relation.set("alias", nodes.alias(alias))
    return relation


def relation(text: str) -> exp.Expr:
    """What dbt hands to a test as its model: a relation, or a subquery with an alias.

    >>> relation("(select * from shop.orders where id > 1) dbt_subquery").sql("spark")
    '(SELECT * FROM shop.orders WHERE id > 1) AS dbt_subquery'
    """
    source = sqlglot.parse_one(f"select * from {text}", read="spark").find(exp.From)
    assert source is not None
    found: exp.Expr = source.this
    return found

"""A query of the generator as the text of a model: Spark's SQL, qualified tables, named columns, no final order.

A model is a table, which has no order, so a final ORDER BY and the LIMIT that goes with it are left out.  Those inside
the query stay.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

#: Names that became keywords of DuckDB after the queries were written.
NEW_KEYWORDS = frozenset(("at",))


@dataclass(frozen=True)
class Model:
    """``sql`` is Spark's; ``original`` is the same query as DuckDB's tree, as it was read."""

    sql: str
    original: exp.Expr
    tables: tuple[str, ...]


def model_of(text: str, tables: Collection[str], schema: str = "db") -> Model:
    tree = sqlglot.parse_one(text.strip().rstrip(";"), read="duckdb")
    while isinstance(tree, (exp.Subquery, exp.Paren)):
        tree = tree.this
    for clause in ("order", "limit", "offset"):
        tree.set(clause, None)
    _name_columns(tree)
    used = _qualify_tables(tree, tables, schema)
    for identifier in tree.find_all(exp.Identifier):
        if identifier.name.lower() in NEW_KEYWORDS:
            identifier.set("quoted", True)
    return Model(tree.sql(dialect="spark", pretty=True), tree, used)


def _name_columns(tree: exp.Expr) -> None:
    """Every output column gets a name, each name once: c<n> for expressions, <name>_<n> for the later of two."""
    select = tree
    while isinstance(select, exp.SetOperation):
        select = select.left
    while isinstance(select, exp.Subquery):
        select = select.this
    if not isinstance(select, exp.Select):
        raise ValueError(f"expected SELECT, found {select.key}")
    taken: set[str] = set()
    for number, column in enumerate(list(select.selects), 1):
        if column.is_star:
            continue
        value = column.unalias().unnest()
        name = (column.alias or value.output_name).lower()
        if not name or name in taken or isinstance(column, exp.Paren):
            fresh = f"{name}_{number}" if name in taken else name or f"c{number}"
            column.replace(exp.alias_(value.copy(), fresh))
            name = fresh
        taken.add(name)


def _qualify_tables(tree: exp.Expr, tables: Collection[str], schema: str) -> tuple[str, ...]:
    named_here = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    used: dict[str, None] = {}
    for table in tree.find_all(exp.Table):
        name = table.name.lower()
        if name in named_here or table.args.get("db"):
            continue
        if name not in tables:
            raise ValueError(f"unknown table {name}")
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
        table.set("db", exp.to_identifier(schema))
        used[name] = None
    return tuple(used)

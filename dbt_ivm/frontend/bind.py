"""Tables of a query bound to the catalog.

Every mention of a stored table or view gets a short private name, so that later stages need not care about two-
or three-part names, case or quoting; common table expressions keep theirs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.scope import traverse_scope

from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog, Table, View
from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.name_pivots import name_pivots
from dbt_ivm.frontend.parse import line_of

PRIVATE = "__ivm_relation_"


@dataclass(frozen=True)
class Bound:
    """A query whose tables are private names, and what they stand for."""

    query: exp.Query
    relations: dict[str, Table | View]

    @property
    def schema(self) -> dict[str, dict[str, str]]:
        return {name: {c.name.lower(): c.type for c in r.columns} for name, r in self.relations.items()}


def table_names(query: exp.Query) -> list[tuple[RelationName, exp.Table]]:
    """Stored relations a query mentions, in order; common table expressions are not among them."""
    found: list[tuple[RelationName, exp.Table]] = []
    seen: set[int] = set()
    for scope in traverse_scope(query):
        for source in scope.sources.values():
            if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier) and id(source) not in seen:
                seen.add(id(source))
                found.append((RelationName.of(source), source))
    return found


def bind(query: exp.Query, catalog: Catalog, namespace: tuple[str, ...] = ()) -> Bound:
    query = query.copy()
    name_pivots(query)
    query = normalize_identifiers(query, dialect="spark")
    with_ = query.args.get("with_")
    if with_ is not None and with_.recursive:
        raise Refusal("recursive_cte", "", line_of(query))
    _drop_qualifiers_of_columns(query)
    relations: dict[str, Table | View] = {}
    private: dict[RelationName, str] = {}
    for name, table in table_names(query):
        _refuse_table_clauses(table)
        full = name.within(namespace)
        if full not in private:
            private[full] = f"{PRIVATE}{len(private)}"
            relations[private[full]] = catalog.find(full)
        alias = table.alias or name.name
        table.set("this", exp.to_identifier(private[full]))
        table.set("db", None)
        table.set("catalog", None)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    return Bound(query, relations)


def _drop_qualifiers_of_columns(query: exp.Query) -> None:
    """``db.table.column`` names the table's alias scope, so ``table.column`` says the same."""
    tables = {(t.db, t.name) for t in query.find_all(exp.Table) if t.db}
    for column in query.find_all(exp.Column):
        if column.args.get("db") and (column.db, column.table) in tables:
            column.set("db", None)
            column.set("catalog", None)


def _refuse_table_clauses(table: exp.Table) -> None:
    line = line_of(table)
    if table.args.get("version") or table.args.get("when"):
        raise Refusal("time_travel", table.sql(dialect="spark"), line)
    if table.args.get("sample"):
        raise Refusal("sample", table.sql(dialect="spark"), line)
    if table.args.get("laterals"):
        raise Refusal("lateral", "", line)


def with_real_names(text: str, relations: dict[str, Table | View]) -> str:
    """A message with the relations' names instead of the private ones."""

    def real(match: re.Match[str]) -> str:
        relation = relations.get(match[0])
        return str(relation.name) if relation else match[0]

    return re.sub(rf"{PRIVATE}\d+", real, text)

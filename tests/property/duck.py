"""Planned Spark statements on DuckDB: transpiled here, and only here.

Sources are laid out so that a statement reads what Delta would give it:

    db.t VERSION AS OF n            the table  t__v<n>
    TABLE_CHANGES('db.t', a, b)     the rows of  t__changes  with _commit_version between a and b
    INSERT … WITH (txnVersion = n)  does nothing when n was written before, as in Delta
    MERGE                           its source is evaluated once, as Delta does; a target row that two source rows
                                    match is an error, as in Delta
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from datetime import date

import duckdb
import sqlglot
from sqlglot import exp

from tests.property.pivots import spell_out

STORAGE = "db.model__ivm"
SOURCE = "merge_source"

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # hints and table properties do not exist here

#: INSERT with the options of one commit, which the parser does not know.
INSERT = re.compile(r"INSERT (INTO|OVERWRITE) (\S+) WITH \((.*)\) BY NAME\n")

#: A change kept for the moment of a refresh.
KEEP = re.compile(r"CACHE TABLE (\S+) OPTIONS \(.*\) AS\n")

Row = tuple[object, ...]


class AmbiguousMerge(Exception):
    """Several source rows match one target row: Delta would refuse the statement."""


def _connect() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1})


class Duck:
    """One in-memory database, reused; tables of the next history replace those of the last."""

    def __init__(self) -> None:
        self.connection = _connect()
        self.tables: list[str] = []
        self.transactions: dict[tuple[str, str], int] = {}

    def create(self, name: str, columns: dict[str, str], rows: Iterable[Row]) -> None:
        """A table with these rows; types are DuckDB's."""
        listed = ", ".join(f'"{n}" {t}' for n, t in columns.items())
        statement = f'CREATE OR REPLACE TABLE "{name}" ({listed})'
        values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
        if values:
            statement += f'; INSERT INTO "{name}" VALUES {values}'
        self.connection.execute(statement)
        self.tables.append(name)

    def drop_all(self) -> None:
        if self.tables:
            self.connection.execute("; ".join(f'DROP TABLE IF EXISTS "{n}"' for n in dict.fromkeys(self.tables)))
            self.tables.clear()

    def restart(self) -> None:
        """After an internal error a database cannot be used any more."""
        self.connection = _connect()
        self.tables.clear()
        self.transactions.clear()

    def run(self, sql: str) -> None:
        """Execute one planned statement."""
        inserted = INSERT.match(sql)
        if inserted:
            self._insert(inserted, sql[inserted.end() :])
            return
        kept = KEEP.match(sql)
        if kept:
            query = to_duckdb(sqlglot.parse_one(sql[kept.end() :], read="spark"))
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {kept[1]} AS {query}")
            return
        tree = sqlglot.parse_one(sql, read="spark")
        if isinstance(tree, exp.Merge):
            self._merge(tree)
            return
        if isinstance(tree, exp.Create):
            tree.set("properties", None)
            self.transactions.clear()
            self.tables.append(local_name(STORAGE))
        self.connection.execute(to_duckdb(tree))

    def _insert(self, head: re.Match[str], query: str) -> None:
        """Delta writes a commit of one application once: a sequence number it has seen is skipped."""
        kind, relation, options = head.groups()
        application, seq = (re.search(rf"'{o}' = '([^']*)'", options) for o in ("txnAppId", "txnVersion"))
        assert application and seq
        name, number = local_name(relation), int(seq[1])
        if self.transactions.get((name, application[1]), 0) >= number:
            return
        rows = to_duckdb(sqlglot.parse_one(query, read="spark"))
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {SOURCE} AS {rows}")
        empty = f"DELETE FROM {name}; " if kind == "OVERWRITE" else ""
        self.connection.execute(f"BEGIN; {empty}INSERT INTO {name} BY NAME SELECT * FROM {SOURCE}; COMMIT")
        self.transactions[(name, application[1])] = number

    def rows(self, sql: str) -> list[Row]:
        """The rows of a DuckDB query."""
        found: list[Row] = self.connection.execute(sql).fetchall()
        return found

    def dictionaries(self, sql: str) -> list[dict[str, object]]:
        """The same, with the names of the columns."""
        found = self.connection.execute(sql)
        names = [d[0] for d in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def _merge(self, merge: exp.Merge) -> None:
        using = merge.args["using"]
        materialized = to_duckdb(using.this)
        on, target = merge.args["on"], merge.this
        check = (
            f"SELECT 1 FROM {target.name} AS {target.alias} JOIN {SOURCE} AS {using.alias} "
            f"ON {on.sql(dialect='duckdb')} GROUP BY {target.alias}.rowid HAVING COUNT(*) > 1"
        )
        merge.set(
            "using",
            exp.Table(this=exp.to_identifier(SOURCE), alias=exp.TableAlias(this=exp.to_identifier(using.alias))),
        )
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {SOURCE} AS {materialized}")
        if self.connection.execute(check).fetchone():
            raise AmbiguousMerge(f"two source rows match one target row ON {on.sql(dialect='spark')}")
        _error_clauses(merge)
        self.connection.execute(to_duckdb(merge))


def to_duckdb(tree: exp.Expr, versions: dict[str, int] | None = None) -> str:
    """The DuckDB text of a Spark tree; the tree is changed."""
    for pivot in list(tree.find_all(exp.Pivot)):
        spell_out(pivot)
    for node in list(tree.walk()):
        if isinstance(node, exp.Table):
            _localize(node, versions or {})
        elif isinstance(node, exp.Anonymous):
            if node.name.upper() == "RAISE_ERROR":
                node.set("this", "error")
            elif node.name.upper() == "XXHASH64":
                node.set("this", "hash")
            elif node.name.upper() == "MONOTONICALLY_INCREASING_ID":
                node.replace(exp.Window(this=exp.RowNumber()))
        elif isinstance(node, exp.GenerateSeries):
            node.set("end", _positive(node.args["end"]))
        elif isinstance(node, exp.Join) and node.kind in ("SEMI", "ANTI"):
            node.set("side", None)
        elif isinstance(node, exp.Select):
            node.set("hint", None)
    return tree.sql(dialect="duckdb", copy=False)


def _positive(end: exp.Expr) -> exp.Expr:
    """Spark counts downwards where DuckDB stops: a weight below one is a bug, not an empty sequence."""
    wrong = exp.Anonymous(this="error", expressions=[exp.Literal.string("repeat by a weight below one")])
    checked = exp.Case(ifs=[exp.If(this=exp.LT(this=end.copy(), expression=exp.Literal.number(1)), true=wrong)])
    return exp.cast(exp.Coalesce(this=checked, expressions=[end.copy()]), "bigint")


def _error_clauses(merge: exp.Merge) -> None:
    """RAISE_ERROR in a clause as DuckDB's ERROR action: DuckDB computes the values of all clauses for all rows.

    THEN UPDATE SET x = RAISE_ERROR(m)                              →  THEN ERROR m
    WHEN p THEN UPDATE SET x = CASE WHEN c THEN v ELSE RAISE_ERROR  →  WHEN p AND NOT c THEN ERROR m, WHEN p … x = v
    """
    clauses: list[exp.Expr] = []
    for when in merge.args["whens"].expressions:
        for call in list(when.find_all(exp.Anonymous)):
            if call.name.upper() != "RAISE_ERROR":
                continue
            action = exp.Var(this=f"ERROR {call.expressions[0].sql(dialect='duckdb')}")
            choice = call.find_ancestor(exp.Case)
            if choice is None:
                when.set("then", action)
                break
            (branch,) = choice.args["ifs"]
            holds = exp.Coalesce(this=branch.this.copy(), expressions=[exp.false()])
            failed = exp.and_(when.args["condition"].copy(), exp.not_(holds))
            clauses.append(exp.When(matched=when.args["matched"], source=False, condition=failed, then=action))
            choice.replace(branch.args["true"])
        clauses.append(when)
    merge.set("whens", exp.Whens(expressions=clauses))


def _localize(table: exp.Table, versions: dict[str, int]) -> None:
    feed = table.this
    if isinstance(feed, exp.Anonymous):
        if feed.name.upper() != "TABLE_CHANGES":
            raise ValueError(f"unknown table function {feed.name}")
        source, first, last = feed.expressions
        window = exp.column("_commit_version").between(first.copy(), last.copy())
        rows = (
            exp.Select(expressions=[exp.Star()])
            .from_(exp.Table(this=exp.to_identifier(f"{local_name(source.name)}__changes")))
            .where(window)
        )
        table.replace(exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier(table.alias))))
        return
    if not table.args.get("db"):
        return
    name = table.name.lower()
    pinned = table.args.get("version")
    version = pinned.expression.name if pinned is not None else versions.get(name)
    if version is not None and not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    table.set("this", exp.to_identifier(name if version is None else f"{name}__v{version}"))
    table.set("db", None)
    table.set("version", None)


def local_name(relation: str) -> str:
    return relation.rsplit(".", 1)[-1].lower()


def literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return exp.Literal.string(value).sql() if isinstance(value, str) else str(value)

"""The tables of a query through rounds of changes, made inside DuckDB: snapshots ``t__v<n>`` and feeds ``t__changes``.

Each round is two commits in every table:

    rows leave, rows change        attributes, foreign keys, to values of other rows, to NULL, to what the query wants
    rows come                      copies with new keys; half of what left in this round and in the last, as it was

Columns that are ``settled`` never change.  Rows are picked by hashes of their keys and the seed, so a seed gives the
same history.  In a ``dense`` history all references of a table go to few rows, so that joins of several facts find each
other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import duckdb

from benchmarks.coverage.data import TableData
from benchmarks.coverage.steering import Wanted

#: One row of so many leaves, as many change, as many come; of small tables at least a few.
SHARE = 100
FEW = 3
COMMITS_PER_ROUND = 2
#: One row of so many is steered to what the query wants.
STEERED = 4
#: In a dense history so many rows of a table are referenced.
DENSE = 16
#: What happens to a column of a changed row, out of 48: another row's value, NULL; else it stays.
OTHER_VALUE, NULL_VALUE, OUT_OF = 5, 6, 48


@dataclass(frozen=True)
class History:
    connection: duckdb.DuckDBPyConnection
    tables: Mapping[str, TableData]
    seed: int = 0
    wanted: Wanted | None = None
    settled: frozenset[str] = frozenset()
    dense: bool = False

    def load(self) -> None:
        """Version 0 of every table, and its empty feed."""
        for table in self.tables.values():
            columns = ", ".join(f"{self._steered(table, c, c, 0)} AS {c}" for c in table.columns)
            self._run(f"CREATE OR REPLACE TABLE {table.name}__v0 AS SELECT {columns} FROM '{table.file}' AS r")
        for table in self.tables.values() if self.dense else ():
            self._narrow(table)
        for table in self.tables.values():
            self._run(
                f"CREATE OR REPLACE TABLE {table.name}__changes AS SELECT *, '' AS _change_type,"
                f" 0::BIGINT AS _commit_version FROM {table.name}__v0 LIMIT 0"
            )

    def _narrow(self, table: TableData) -> None:
        """References by the old value, so that what was equal stays equal: half go to rows that are steered."""
        values, joins = {c: f"r.{c}" for c in table.columns}, []
        for number, (column, to) in enumerate(self._references(table)):
            parent = self.tables[to]
            (key,) = parent.keys.primary_key
            order, steered = self._hash(parent, 0), self._is_steered(parent, 0)
            half = f"row_number() OVER (PARTITION BY {steered} ORDER BY {order}) <= {DENSE // 2}"
            place = f"row_number() OVER (ORDER BY {steered}, {order}) - 1 AS place, count(*) OVER () AS n"
            chosen = f"SELECT {key} AS key, {place} FROM (FROM {to}__v0 AS r QUALIFY {half}) AS r"
            joins.append(f"LEFT JOIN ({chosen}) AS f{number} ON f{number}.place = hash(r.{column}) % f{number}.n")
            values[column] = f"CASE WHEN r.{column} IS NOT NULL THEN f{number}.key END"
        listed = ", ".join(f"{v} AS {c}" for c, v in values.items())
        self._run(
            f"CREATE OR REPLACE TABLE {table.name}__v0 AS SELECT {listed} FROM {table.name}__v0 AS r {' '.join(joins)}"
        )

    def _references(self, table: TableData) -> list[tuple[str, str]]:
        """Foreign keys to tables that are here, but for those that are part of the key."""
        return [(c, to) for c, to in table.keys.references if to in self.tables and c not in table.keys.primary_key]

    def change(self, number: int) -> int:
        """The commits of a round (the first is 1); the version of every table after it."""
        version = (number - 1) * COMMITS_PER_ROUND
        for table in self.tables.values():
            self._lose_and_update(table, version)
        for table in self.tables.values():
            self._gain(table, version + 1)
        for table in self.tables.values():
            for later in (version + 1, version + 2):
                self._feed(table, later)
        return version + COMMITS_PER_ROUND

    def _lose_and_update(self, table: TableData, version: int) -> None:
        rows = self._count(f"{table.name}__v{version}")
        leaving = min(max(FEW, rows // SHARE), rows // 4)
        changing = min(max(FEW, rows // SHARE), rows // 4)
        listed = ", ".join(table.columns)
        kept = f"SELECT {listed} FROM picked WHERE rank > {leaving + changing}"
        changed = self._copies(table, version, table.columns, f"r.rank > {leaving} AND r.rank <= {leaving + changing}")
        self._pick(table, version)
        self._run(f"CREATE OR REPLACE TABLE {table.name}__v{version + 1} AS {kept} UNION ALL {changed}")

    def _gain(self, table: TableData, version: int) -> None:
        rows = self._count(f"{table.name}__v{version}")
        self._pick(table, version)
        copies = self._copies(table, version, self._fresh_key(table, version), f"r.rank <= {max(FEW, rows // SHARE)}")
        came = " UNION ALL ".join([copies, *self._returning(table, version)])
        key, listed = ", ".join(table.keys.primary_key), ", ".join(table.columns)
        self._run(
            f"CREATE OR REPLACE TABLE {table.name}__v{version + 1} AS SELECT * FROM {table.name}__v{version} UNION ALL"
            f" SELECT {listed} FROM (SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY {listed}) AS copy"
            f" FROM ({came})) AS r WHERE copy = 1 AND {self._absent(table, version)}"
        )

    def _returning(self, table: TableData, version: int) -> Iterable[str]:
        """Half of the rows that left in this round, and of those that left in the round before."""
        for before in (version - 1, version - 1 - COMMITS_PER_ROUND):
            if before >= 0:
                half = f"{self._hash(table, before)} % 2 = 0"
                yield f"SELECT * FROM {table.name}__v{before} AS r WHERE {half} AND {self._absent(table, before + 1)}"

    def _absent(self, table: TableData, version: int) -> str:
        same = " AND ".join(f"o.{k} = r.{k}" for k in table.keys.primary_key)
        return f"NOT EXISTS (SELECT 1 FROM {table.name}__v{version} AS o WHERE {same})"

    def _pick(self, table: TableData, version: int) -> None:
        """The rows in an order of their own for each version."""
        self._run(
            f"CREATE OR REPLACE TEMP TABLE picked AS SELECT *, row_number() OVER (ORDER BY"
            f" {self._hash(table, version)}, {', '.join(table.keys.primary_key)}) AS rank"
            f" FROM {table.name}__v{version} AS r"
        )

    def _copies(self, table: TableData, version: int, keys: Iterable[str], condition: str) -> str:
        """Picked rows with other values; ``keys`` are the values of the key columns, in the order of all columns.

        A foreign key gets the key of any row of the table it references, when that table is here.
        """
        values = dict(zip(table.columns, keys, strict=True))
        rows = self._count(f"{table.name}__v{version}")
        joins = [f"JOIN picked AS o ON o.rank = 1 + (r.rank * 7919 + {self.seed + version}) % {max(rows, 1)}"]
        for number, (column, to) in enumerate(self._references(table)):
            (key,) = self.tables[to].keys.primary_key
            total = max(self._count(f"{to}__v{version}"), 1)
            keys = f"SELECT {key} AS key, row_number() OVER (ORDER BY {key}) - 1 AS place FROM {to}__v{version}"
            place = f"{self._hash(table, version, column)} % {total}"
            joins.append(f"LEFT JOIN ({keys}) AS f{number} ON f{number}.place = {place}")
            values[column] = self._changed(table, column, f"f{number}.key", version)
        for column in table.columns:
            if values[column] == column and column not in table.keys.primary_key:
                values[column] = self._changed(table, column, f"o.{column}", version)
            elif values[column] == column:
                values[column] = f"r.{column}"
        listed = ", ".join(f"{v} AS {c}" for c, v in values.items())
        return f"SELECT {listed} FROM picked AS r {' '.join(joins)} WHERE {condition}"

    def _changed(self, table: TableData, column: str, other: str, version: int) -> str:
        if column in self.settled:
            return f"r.{column}"
        lot = f"{self._hash(table, version, column)} % {OUT_OF}"
        value = f"CASE WHEN {lot} < {OTHER_VALUE} THEN {other} WHEN {lot} < {NULL_VALUE} THEN NULL ELSE r.{column} END"
        return self._steered(table, column, value, version)

    def _steered(self, table: TableData, column: str, value: str, version: int) -> str:
        constants = (self.wanted or {}).get(column, ())
        if not constants or column in table.keys.primary_key:
            return value
        lot = self._hash(table, version, column)
        casts = [f"TRY_CAST({c} AS {_duckdb_type(table.columns[column])})" for c in constants]
        choice = " ".join(f"WHEN {lot} % {len(constants)} = {n} THEN {c}" for n, c in enumerate(casts))
        return f"CASE WHEN {self._is_steered(table, version)} THEN CASE {choice} END ELSE {value} END"

    def _is_steered(self, table: TableData, version: int) -> str:
        return f"{self._hash(table, version)} // 64 % {STEERED} = 0"

    def _fresh_key(self, table: TableData, version: int) -> list[str]:
        """A number that was not there; of several columns the last is another row's, so that the key still joins."""
        key = table.keys.primary_key
        if len(key) == 1:
            (highest,) = self._row(f"SELECT max({key[0]}) FROM {table.name}__v{version}")
            return [f"{highest or 0} + r.rank" if c == key[0] else c for c in table.columns]
        return [f"o.{c}" if c == key[-1] else c for c in table.columns]

    def _feed(self, table: TableData, version: int) -> None:
        """What Delta's change feed would hold for this version: keys are unique, so rows are compared by key."""
        rows, key = ", ".join(f"r.{c}" for c in table.columns), table.keys.primary_key
        same = " AND ".join(f"o.{k} = r.{k}" for k in key)
        differs = " OR ".join(f"o.{c} IS DISTINCT FROM r.{c}" for c in table.columns)
        sides = (
            (version - 1, version, "update_preimage", "delete"),
            (version, version - 1, "update_postimage", "insert"),
        )
        for here, there, updated, alone in sides:
            self._run(
                f"INSERT INTO {table.name}__changes SELECT {rows}, CASE WHEN o.{key[0]} IS NULL THEN '{alone}'"
                f" ELSE '{updated}' END, {version} FROM {table.name}__v{here} AS r"
                f" LEFT JOIN {table.name}__v{there} AS o ON {same} WHERE {differs}"
            )

    def _hash(self, table: TableData, version: int, *more: str) -> str:
        parts = [f"r.{k}" for k in table.keys.primary_key] + [f"'{m}'" for m in more]
        return f"hash({', '.join(parts)}, {self.seed}, {version})"

    def _count(self, relation: str) -> int:
        (rows,) = self._row(f"SELECT count(*) FROM {relation}")
        return int(str(rows))

    def _row(self, sql: str) -> tuple[object, ...]:
        found = self.connection.execute(sql).fetchone()
        assert found is not None
        return tuple(found)

    def _run(self, sql: str) -> None:
        self.connection.execute(sql)


def _duckdb_type(spark_type: str) -> str:
    return {"string": "varchar"}.get(spark_type, spark_type)

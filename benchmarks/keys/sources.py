"""The Delta tables of one view: loaded without the rows that come later, then changed round by round."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from benchmarks.keys import policy
from benchmarks.keys.data import Data
from benchmarks.keys.schema import TABLES
from benchmarks.keys.views import View

CHANGES = ("policy", "facts", "attributes", "nothing")
ATTRIBUTE_ROWS = 100
#: when a row was loaded, as loading tools write it: the watermark of models written by hand
BATCH = "loaded_batch"
#: no deletion vectors: Delta's default for tables that users make
PROPERTIES = "tblproperties (delta.enableChangeDataFeed = true, delta.enableDeletionVectors = false)"
Counts = dict[str, dict[str, int]]


class BrokenReference(AssertionError):
    pass


class Sources:
    def __init__(self, spark: Any, folder: Path, schema: str, view: View, data: Data) -> None:
        self.spark = spark
        self.folder = folder
        self.schema = schema
        self.view = view
        self.data = data

    def sql(self, statement: str) -> list[Any]:
        found: list[Any] = self.spark.sql(statement).collect()
        return found

    def name(self, table: str) -> str:
        return f"{self.schema}.{table}"

    def load(self, change: str, share: int, rounds: int) -> None:
        """Rows that come in a later round are kept aside."""
        self.sql(f"create database {self.schema} location '{self.folder / 'tables'}'")
        picked = policy.picked_tables(self.view, change)
        for name in self.view.tables:
            rows = f"parquet.`{self.data.file(TABLES[name])}`"
            scheduled = policy.scheduled(self.view, name, rows, name in picked, share, rounds)
            self.spark.sql(scheduled).createOrReplaceTempView(f"scheduled_{name}")
            moving = str(self.folder / "moving" / name)
            self.spark.sql(f"select * from scheduled_{name} where {policy.IS_MOVING}").write.parquet(moving)
            self.spark.read.parquet(moving).createOrReplaceTempView(f"moving_{name}")
            self.sql(
                f"create table {self.name(name)} using delta {PROPERTIES} as"
                f" select * except (comes, goes), 0 as {BATCH} from scheduled_{name} where {policy.rows_at_start()}"
            )

    def change(self, kind: str, number: int) -> Counts:
        """Makes the change of a round; what it did per table."""
        if kind == "nothing":
            return {}
        if kind == "attributes":
            return {self.view.attribute.table: {"updated": self._update_attribute(number)}}
        counts: Counts = {name: {"inserted": self._insert(name, number)} for name in self.view.tables}
        for name in reversed(self.view.tables):
            counts[name]["deleted"] = self._delete(name, number)
        return {name: done for name, done in counts.items() if any(done.values())}

    def _insert(self, table: str, number: int) -> int:
        coming = f"from moving_{table} where {policy.rows_coming(number)}"
        ((rows,),) = self.sql(f"select count(*) {coming}")
        if rows:
            self.sql(f"insert into {self.name(table)} select * except (comes, goes), {number + 1} as {BATCH} {coming}")
        return int(rows)

    def _delete(self, table: str, number: int) -> int:
        """By MERGE: Delta's DELETE takes no subquery of several columns."""
        key = TABLES[table].primary_key
        going = f"from moving_{table} where {policy.rows_going(number)}"
        ((rows,),) = self.sql(f"select count(*) {going}")
        if rows:
            same = " and ".join(f"t.{column} = s.{column}" for column in key)
            self.sql(
                f"merge into {self.name(table)} t using (select {', '.join(key)} {going}) s on {same}"
                " when matched then delete"
            )
        return int(rows)

    def _update_attribute(self, number: int) -> int:
        wanted = self.view.attribute
        table, (key,) = self.name(wanted.table), TABLES[wanted.table].primary_key
        ((rows,),) = self.sql(f"select count(*) from {table}")
        first = number * ATTRIBUTE_ROWS % max(1, rows - ATTRIBUTE_ROWS)
        order = f"order by xxhash64('{wanted.table}', {key}) limit {ATTRIBUTE_ROWS} offset {first}"
        keys = ", ".join(str(k) for (k,) in self.sql(f"select {key} from {table} {order}"))
        changed = f"{wanted.column} = {wanted.value}, {BATCH} = {number + 1}"
        ((updated,),) = self.sql(f"update {table} set {changed} where {key} in ({keys})")
        return int(updated)

    def check_references(self) -> None:
        """Every declared foreign key holds: the changes are meant to respect them."""
        for name in self.view.tables:
            for column in TABLES[name].not_null:
                ((missing,),) = self.sql(f"select count(*) from {self.name(name)} where {column} is null")
                if missing:
                    raise BrokenReference(f"{self.view.name}: {column} is NULL in {missing} rows of {name}")
            for key in self.view.foreign_keys(name):
                pairs = zip(key.columns, TABLES[key.to].primary_key, strict=True)
                same = " and ".join(f"t.{a} = r.{b}" for a, b in pairs)
                known = " and ".join(f"t.{column} is not null" for column in key.columns)
                ((dangling,),) = self.sql(
                    f"select count(*) from {self.name(name)} t left anti join {self.name(key.to)} r on {same}"
                    f" where {known}"
                )
                if dangling:
                    where = f"{name}({', '.join(key.columns)}) -> {key.to}"
                    raise BrokenReference(f"{self.view.name}: {dangling} rows of {where} reference nothing")

    def vacuum(self, relation: str) -> None:
        """Files that a rewrite replaced; a day of benchmarks would fill the disk."""
        self.sql(f"vacuum {relation} retain 0 hours")

    def drop(self) -> None:
        self.sql(f"drop database if exists {self.schema} cascade")
        for name in self.view.tables:
            for kind in ("scheduled", "moving"):
                self.spark.catalog.dropTempView(f"{kind}_{name}")
        shutil.rmtree(self.folder, ignore_errors=True)

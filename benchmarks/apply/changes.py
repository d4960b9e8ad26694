"""Changes of the fact table: exactly so many keys, the same ones in every run.

Keys are ordered by a hash (random) or by themselves (clustered); the first so many are updated, the next deleted.  The
bounds are found first, so that the statements are plain range predicates without a join.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.apply.tables import Tables


@dataclass(frozen=True)
class Mix:
    inserted: int
    updated: int
    deleted: int

    @property
    def dead_rows(self) -> int:
        return self.updated + self.deleted


def mix(kind: str, keys: int) -> Mix:
    """
    >>> mix("mixed random", 1000), mix("inserts", 10)
    (Mix(inserted=200, updated=600, deleted=200), Mix(inserted=10, updated=0, deleted=0))
    """
    if kind == "inserts":
        return Mix(keys, 0, 0)
    if kind == "warm up":  # no deletes: the model written by hand is to stay right
        return Mix(keys // 2, keys - keys // 2, 0)
    fifth = keys // 5
    return Mix(fifth, keys - 2 * fifth, fifth)


def change(tables: Tables, kind: str, keys: int) -> Mix:
    """Changes the fact table in up to three commits."""
    tables.version_number += 1
    parts = mix(kind, keys)
    if parts.dead_rows:
        _update_and_delete(tables, parts, clustered=kind == "mixed clustered")
    if parts.inserted:
        end = tables.next_id + parts.inserted * tables.step
        tables.sql(f"insert into {tables.schema}.fact {tables.rows_from(tables.next_id, end)}")
        tables.next_id = end
    return parts


def _update_and_delete(tables: Tables, parts: Mix, clustered: bool) -> None:
    fact, number = f"{tables.schema}.fact", tables.version_number
    if clustered:
        room = max(1, tables.rows - 2 * parts.dead_rows) * tables.step
        order, first = "id", number * 7919 * 131 % room
    else:
        order, first = f"xxhash64(id, {number})", -(2**63) + 1
    ((last_updated, last_deleted),) = tables.sql(
        f"select max(case when place <= {parts.updated} then k end), max(k) from ("
        f" select k, row_number() over (order by k) as place from ("
        f"  select {order} as k from {fact} where {order} >= {first} order by k limit {parts.dead_rows}))"
    )
    update = f"update {fact} set amount = amount + 1, version_number = {number}"
    _exactly(tables, f"{update} where {order} between {first} and {last_updated}", parts.updated)
    if parts.deleted:
        beyond = f"{order} > {last_updated} and {order} <= {last_deleted}"
        _exactly(tables, f"delete from {fact} where {beyond}", parts.deleted)


def _exactly(tables: Tables, statement: str, rows: int) -> None:
    ((affected,),) = tables.sql(statement)
    if affected != rows:
        raise AssertionError(f"{affected} rows instead of {rows} changed by: {statement}")

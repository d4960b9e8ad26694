"""One working day of the shop: the changes between two refreshes, to several tables at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from examples.shop.demo.data import SCHEMA, Sizes, line_rows, order_rows, refund_rows


@dataclass(frozen=True)
class Change:
    """What happened, in words and as (table, statement)."""

    what: str
    statements: tuple[tuple[str, str], ...]


def insert(table: str, rows: str) -> tuple[str, str]:
    return table, f"insert into {SCHEMA}.{table} {rows}"


def update(table: str, what: str) -> tuple[str, str]:
    return table, f"update {SCHEMA}.{table} set {what}"


def delete(table: str, which: str) -> tuple[str, str]:
    return table, f"delete from {SCHEMA}.{table} where {which}"


def a_day_of_changes(sizes: Sizes) -> tuple[Change, ...]:
    first, last = sizes.orders, sizes.orders + sizes.orders // 500
    late, again = last, 42
    return (
        Change(
            "new orders with their lines",
            (
                insert("orders", order_rows(sizes, first, last)),
                insert("lineitem", line_rows(sizes, first, last)),
            ),
        ),
        Change(
            "an order that arrives late: it is dated 2019",
            (
                insert("orders", f"values ({late}, 7, date'2019-03-01', 'shipped')"),
                insert("lineitem", f"values ({late}, 1, 3, 2, 19.90, 0.05)"),
            ),
        ),
        Change("order lines deleted", (delete("lineitem", "order_id % 1499 = 5 and line_number = 4"),)),
        Change(
            "orders cancelled: stg_orders filters, all their lines leave",
            (update("orders", "status = 'cancelled' where id % 997 = 1 and status <> 'cancelled'"),),
        ),
        Change(
            "customers moved to another segment",
            (update("customer", "segment = 'corporate' where id % 500 = 7 and segment <> 'corporate'"),),
        ),
        Change("products moved to another brand", (update("product", "brand = 'brand 1' where id % 400 = 3"),)),
        Change(
            f"order {again}: its lines deleted, inserted again, one changed",
            (
                delete("lineitem", f"order_id = {again}"),
                insert("lineitem", line_rows(sizes, again, again + 1)),
                update("lineitem", f"quantity = quantity + 10 where order_id = {again} and line_number = 2"),
            ),
        ),
        Change("refunds paid", (insert("refund", refund_rows(sizes, sizes.refunds, sizes.refunds + 50)),)),
    )


def one_more_change() -> Change:
    """Small, for a look at what the next refresh would do."""
    return Change("a customer moved to another segment", (update("customer", "segment = 'public' where id = 7"),))


def apply_change(spark: Any, change: Change) -> int:
    """Run its statements; the number of source rows they touched."""
    touched = 0
    for table, statement in change.statements:
        spark.sql(statement).collect()
        touched += rows_of_last_commit(spark, table)
    return touched


def apply_changes(spark: Any, changes: tuple[Change, ...]) -> Iterator[tuple[Change, int]]:
    for change in changes:
        yield change, apply_change(spark, change)


def rows_of_last_commit(spark: Any, table: str) -> int:
    """An INSERT returns no count; the table's history has one for every statement."""
    commit = spark.sql(f"describe history {SCHEMA}.{table} limit 1").collect()[0]
    name = {"DELETE": "numDeletedRows", "UPDATE": "numUpdatedRows"}.get(commit["operation"], "numOutputRows")
    return int(commit["operationMetrics"][name])

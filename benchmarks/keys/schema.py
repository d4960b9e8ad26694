"""The tables of the views with their keys.  Names are those of the generators; TPC-H's customer becomes h_customer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class ForeignKey:
    columns: tuple[str, ...]
    to: str


@dataclass(frozen=True)
class Table:
    """``foreign_keys`` are all that any view declares; a view declares those whose both ends it reads.

    ``not_null`` are referencing columns that always have a value; of keys inside a kept subtree that matters.
    """

    name: str
    primary_key: tuple[str, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()
    benchmark: str = "tpcds"
    generated_as: str = ""
    not_null: tuple[str, ...] = ()

    @property
    def stored_as(self) -> str:
        return self.generated_as or self.name

    def foreign_keys_among(self, tables: Collection[str]) -> tuple[ForeignKey, ...]:
        return tuple(key for key in self.foreign_keys if key.to in tables)


def _table(
    name: str,
    primary_key: str,
    *foreign_keys: str,
    benchmark: str = "tpcds",
    generated_as: str = "",
    not_null: str = "",
) -> Table:
    """Keys as words: ``"a b"``, ``"c d -> other"``."""
    keys = (key.split(" -> ") for key in foreign_keys)
    references = tuple(ForeignKey(tuple(columns.split()), to) for columns, to in keys)
    return Table(name, tuple(primary_key.split()), references, benchmark, generated_as, tuple(not_null.split()))


#: referenced tables first: rows are inserted in this order and deleted in the other
TABLES = {
    table.name: table
    for table in (
        _table("customer_address", "ca_address_sk"),
        _table("item", "i_item_sk"),
        _table("date_dim", "d_date_sk"),
        _table("store", "s_store_sk"),
        _table("customer", "c_customer_sk", "c_current_addr_sk -> customer_address", not_null="c_current_addr_sk"),
        _table(
            "store_sales",
            "ss_item_sk ss_ticket_number",
            "ss_addr_sk -> customer_address",
            "ss_item_sk -> item",
            "ss_sold_date_sk -> date_dim",
            "ss_store_sk -> store",
        ),
        _table(
            "store_returns",
            "sr_item_sk sr_ticket_number",
            "sr_item_sk sr_ticket_number -> store_sales",
            "sr_returned_date_sk -> date_dim",
        ),
        # the ship_* keys are not joined by any view, but changes follow them
        _table(
            "catalog_sales",
            "cs_item_sk cs_order_number",
            "cs_bill_addr_sk -> customer_address",
            "cs_ship_addr_sk -> customer_address",
            "cs_item_sk -> item",
            "cs_sold_date_sk -> date_dim",
            "cs_ship_date_sk -> date_dim",
        ),
        _table(
            "web_sales",
            "ws_item_sk ws_order_number",
            "ws_bill_addr_sk -> customer_address",
            "ws_ship_addr_sk -> customer_address",
            "ws_item_sk -> item",
            "ws_bill_customer_sk -> customer",
            "ws_ship_customer_sk -> customer",
            "ws_sold_date_sk -> date_dim",
            "ws_ship_date_sk -> date_dim",
        ),
        _table("nation", "n_nationkey", benchmark="tpch"),
        _table(
            "h_customer",
            "c_custkey",
            "c_nationkey -> nation",
            benchmark="tpch",
            generated_as="customer",
            not_null="c_nationkey",
        ),
        _table("orders", "o_orderkey", "o_custkey -> h_customer", benchmark="tpch", not_null="o_custkey"),
        _table("lineitem", "l_orderkey l_linenumber", "l_orderkey -> orders", benchmark="tpch"),
    )
}

"""Keys of all tables.  Columns and their types are read from the generated files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableKeys:
    """``references``: the column of each foreign key of one column, and the table it references."""

    name: str
    primary_key: tuple[str, ...]
    references: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Benchmark:
    """``letter`` begins the names of its queries: h01, ds45."""

    name: str
    letter: str
    tables: tuple[TableKeys, ...]

    def keys_of(self, table: str) -> TableKeys:
        return next(t for t in self.tables if t.name == table)


def _tables(text: str) -> tuple[TableKeys, ...]:
    """One table per line: name, key columns with ``+`` between, foreign keys as ``column>table``."""
    found = []
    for line in text.strip().splitlines():
        name, key, *references = line.split()
        found.append(TableKeys(name, tuple(key.split("+")), tuple(_reference(r) for r in references)))
    return tuple(found)


def _reference(text: str) -> tuple[str, str]:
    column, table = text.split(">")
    return column, table


TPCH = Benchmark(
    "tpch",
    "h",
    _tables("""
        region r_regionkey
        nation n_nationkey n_regionkey>region
        customer c_custkey c_nationkey>nation
        supplier s_suppkey s_nationkey>nation
        part p_partkey
        partsupp ps_partkey+ps_suppkey ps_partkey>part ps_suppkey>supplier
        orders o_orderkey o_custkey>customer
        lineitem l_orderkey+l_linenumber l_orderkey>orders l_partkey>part l_suppkey>supplier
    """),
)

TPCDS = Benchmark(
    "tpcds",
    "ds",
    _tables("""
        call_center cc_call_center_sk
        catalog_page cp_catalog_page_sk
        catalog_returns cr_item_sk+cr_order_number cr_returned_date_sk>date_dim cr_returned_time_sk>time_dim cr_item_sk>item cr_refunded_customer_sk>customer cr_refunded_cdemo_sk>customer_demographics cr_refunded_hdemo_sk>household_demographics cr_refunded_addr_sk>customer_address cr_returning_customer_sk>customer cr_returning_cdemo_sk>customer_demographics cr_returning_hdemo_sk>household_demographics cr_returning_addr_sk>customer_address cr_call_center_sk>call_center cr_catalog_page_sk>catalog_page cr_ship_mode_sk>ship_mode cr_warehouse_sk>warehouse cr_reason_sk>reason
        catalog_sales cs_item_sk+cs_order_number cs_sold_date_sk>date_dim cs_sold_time_sk>time_dim cs_ship_date_sk>date_dim cs_bill_customer_sk>customer cs_bill_cdemo_sk>customer_demographics cs_bill_hdemo_sk>household_demographics cs_bill_addr_sk>customer_address cs_ship_customer_sk>customer cs_ship_cdemo_sk>customer_demographics cs_ship_hdemo_sk>household_demographics cs_ship_addr_sk>customer_address cs_call_center_sk>call_center cs_catalog_page_sk>catalog_page cs_ship_mode_sk>ship_mode cs_warehouse_sk>warehouse cs_item_sk>item cs_promo_sk>promotion
        customer c_customer_sk c_current_cdemo_sk>customer_demographics c_current_hdemo_sk>household_demographics c_current_addr_sk>customer_address c_first_shipto_date_sk>date_dim c_first_sales_date_sk>date_dim
        customer_address ca_address_sk
        customer_demographics cd_demo_sk
        date_dim d_date_sk
        household_demographics hd_demo_sk hd_income_band_sk>income_band
        income_band ib_income_band_sk
        inventory inv_date_sk+inv_item_sk+inv_warehouse_sk inv_date_sk>date_dim inv_item_sk>item inv_warehouse_sk>warehouse
        item i_item_sk
        promotion p_promo_sk p_item_sk>item
        reason r_reason_sk
        ship_mode sm_ship_mode_sk
        store s_store_sk
        store_returns sr_item_sk+sr_ticket_number sr_returned_date_sk>date_dim sr_return_time_sk>time_dim sr_item_sk>item sr_customer_sk>customer sr_cdemo_sk>customer_demographics sr_hdemo_sk>household_demographics sr_addr_sk>customer_address sr_store_sk>store sr_reason_sk>reason
        store_sales ss_item_sk+ss_ticket_number ss_sold_date_sk>date_dim ss_sold_time_sk>time_dim ss_item_sk>item ss_customer_sk>customer ss_cdemo_sk>customer_demographics ss_hdemo_sk>household_demographics ss_addr_sk>customer_address ss_store_sk>store ss_promo_sk>promotion
        time_dim t_time_sk
        warehouse w_warehouse_sk
        web_page wp_web_page_sk
        web_returns wr_item_sk+wr_order_number wr_returned_date_sk>date_dim wr_returned_time_sk>time_dim wr_item_sk>item wr_refunded_customer_sk>customer wr_refunded_cdemo_sk>customer_demographics wr_refunded_hdemo_sk>household_demographics wr_refunded_addr_sk>customer_address wr_returning_customer_sk>customer wr_returning_cdemo_sk>customer_demographics wr_returning_hdemo_sk>household_demographics wr_returning_addr_sk>customer_address wr_web_page_sk>web_page wr_reason_sk>reason
        web_sales ws_item_sk+ws_order_number ws_sold_date_sk>date_dim ws_sold_time_sk>time_dim ws_ship_date_sk>date_dim ws_item_sk>item ws_bill_customer_sk>customer ws_bill_cdemo_sk>customer_demographics ws_bill_hdemo_sk>household_demographics ws_bill_addr_sk>customer_address ws_ship_customer_sk>customer ws_ship_cdemo_sk>customer_demographics ws_ship_hdemo_sk>household_demographics ws_ship_addr_sk>customer_address ws_web_page_sk>web_page ws_web_site_sk>web_site ws_ship_mode_sk>ship_mode ws_warehouse_sk>warehouse ws_promo_sk>promotion
        web_site web_site_sk
    """),  # noqa: E501 - one table, one line
)

BENCHMARKS = (TPCH, TPCDS)

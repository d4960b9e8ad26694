"""The fourteen views, each also with a GROUP BY on top: nine stars, a snowflake, a graph with two roots, a chain.

A view is written as the references it joins along; ``python -m benchmarks.keys show`` prints them as SQL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from benchmarks.keys.schema import TABLES, ForeignKey

PLAIN, GROUPED = "plain", "grouped"
SHAPES = (PLAIN, GROUPED)


@dataclass(frozen=True)
class Edge:
    """``table(columns) -> other alias``: an equi-join of columns with the primary key of the other table."""

    referencing: str
    columns: tuple[str, ...]
    referenced: str
    table: str

    @classmethod
    def of(cls, text: str) -> Edge:
        """
        >>> Edge.of("catalog_sales(cs_sold_date_sk) -> date_dim d3")
        Edge(referencing='catalog_sales', columns=('cs_sold_date_sk',), referenced='d3', table='date_dim')
        """
        found = re.fullmatch(r"(\w+)\((.+)\) -> (\w+)(?: (\w+))?", text)
        if found is None:
            raise ValueError(f"not an edge: {text}")
        one, columns, table, alias = found.groups()
        return cls(one, tuple(columns.split(", ")), alias or table, table)

    @property
    def condition(self) -> str:
        pairs = zip(self.columns, TABLES[self.table].primary_key, strict=True)
        return " and ".join(f"{self.referencing}.{a} = {self.referenced}.{b}" for a, b in pairs)


@dataclass(frozen=True)
class Attribute:
    """What the change *attributes* updates: something the view shows or groups by, so the FK-Guard does not hold."""

    table: str
    column: str
    value: str


@dataclass(frozen=True)
class View:
    name: str
    references: tuple[str, ...]
    columns: str
    group_by: str
    measures: str
    attribute: Attribute
    where: str = ""
    undeclared: tuple[str, ...] = ()
    picked: tuple[str, ...] = field(default=())

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        return tuple(map(Edge.of, self.references))

    @cached_property
    def members(self) -> dict[str, str]:
        """alias → table, in the order of the FROM clause."""
        found = {self.edges[0].referencing: self.edges[0].referencing}
        for edge in self.edges:
            found.setdefault(edge.referenced, edge.table)
            found.setdefault(edge.referencing, edge.referencing)
        return found

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """Referenced tables first."""
        return tuple(name for name in TABLES if name in self.members.values())

    @cached_property
    def roots(self) -> tuple[str, ...]:
        referenced = {edge.referenced for edge in self.edges}
        return tuple(alias for alias in self.members if alias not in referenced)

    @property
    def root_key(self) -> tuple[str, ...]:
        """Columns that identify a row of the plain view."""
        return tuple(column for root in self.roots for column in TABLES[root].primary_key)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Tables that the update policy picks rows from; the others follow."""
        return self.picked or tuple(name for name in self.tables if not self.foreign_keys(name))

    def foreign_keys(self, table: str) -> tuple[ForeignKey, ...]:
        """Those declared for this view: both ends are among its tables."""
        keys = TABLES[table].foreign_keys_among(self.tables)
        return tuple(key for key in keys if not set(key.columns) & set(self.undeclared))

    # ------------------------------------------------------------------ SQL; {name} stands for a table
    def select(self, shape: str, *more: str) -> str:
        """The select list."""
        return ",\n  ".join((*self.outputs(shape).values(), *more))

    def outputs(self, shape: str) -> dict[str, str]:
        """Name → select item."""
        plain = {_name(item): item for item in _items(self.columns)}
        if shape == PLAIN:
            return plain
        groups = {name: plain[name] for name in _items(self.group_by)}
        return groups | {_name(item): item for item in _items(self.measures)} | {"row_count": "count(*) as row_count"}

    def joins(self) -> str:
        present, lines = {self.roots[0]}, [_reference(self.roots[0], self.roots[0])]
        for edge in self.edges:
            new = edge.referenced if edge.referencing in present else edge.referencing
            present.add(new)
            lines.append(f"join {_reference(self.members[new], new)} on {edge.condition}")
        return "\n".join(lines)

    def groups(self) -> tuple[str, ...]:
        """Expressions to group by."""
        return tuple(item.split(" as ")[0] for name, item in self.outputs(PLAIN).items() if name in self.group_names)

    @property
    def group_names(self) -> list[str]:
        return _items(self.group_by)

    def query(self, shape: str) -> str:
        parts = [f"select\n  {self.select(shape)}", f"from {self.joins()}"]
        if self.where:
            parts.append(f"where {self.where}")
        if shape == GROUPED:
            parts.append(f"group by {', '.join(self.groups())}")
        return "\n".join(parts) + "\n"


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(", ")]


def _name(item: str) -> str:
    return item.split(" as ")[-1]


def _reference(table: str, alias: str) -> str:
    """The placeholder is filled by project.py (a source of dbt) or by the runner (the table itself)."""
    return f"{{{table}}} {alias}"


def _stars(prefix: str, fact: str, address: str) -> tuple[View, ...]:
    references = (
        f"{fact}({address}) -> customer_address",
        f"{fact}({prefix}_item_sk) -> item",
        f"{fact}({prefix}_sold_date_sk) -> date_dim",
    )
    date, item, price = f"{prefix}_sold_date_sk", f"{prefix}_item_sk", f"{prefix}_ext_sales_price"
    columns = (
        f"{date}, {item}, ca_gmt_offset, {price}",
        f"{date}, i_item_id, ca_gmt_offset, {price}",
        f"i_item_id, d_year, d_moy, ca_gmt_offset, {price}",
    )
    groups = (f"{item}, ca_gmt_offset", "i_item_id, ca_gmt_offset", "d_year, d_moy, ca_gmt_offset")
    attribute = Attribute("customer_address", "ca_gmt_offset", "coalesce(ca_gmt_offset, 0) + 1")
    return tuple(
        View(f"{prefix}_{n + 1}dim", references[: n + 1], columns[n], groups[n], f"sum({price}) as sales", attribute)
        for n in range(3)
    )


_SNOWFLAKE = (
    "web_sales(ws_bill_customer_sk) -> customer",
    "customer(c_current_addr_sk) -> customer_address",
    "web_sales(ws_item_sk) -> item",
    "web_sales(ws_sold_date_sk) -> date_dim",
)
_COUNTY = Attribute("customer_address", "ca_county", "concat(coalesce(ca_county, ''), '+')")
_NOT_IN_THE_SNOWFLAKE = ("ws_bill_addr_sk", "ws_ship_addr_sk")

_CHAIN = (
    "lineitem(l_orderkey) -> orders",
    "orders(o_custkey) -> h_customer",
    "h_customer(c_nationkey) -> nation",
)
_CHAIN_COLUMNS = (
    "l_returnflag, o_orderdate, c_custkey, c_name, l_extendedprice, l_discount, c_acctbal, n_name, c_address, c_phone,"
    " c_comment"
)
_CHAIN_GROUPS = "c_custkey, c_name, c_acctbal, n_name, c_address, c_phone, c_comment"
_REVENUE = "sum(l_extendedprice * (1 - l_discount)) as revenue"
_BALANCE = Attribute("h_customer", "c_acctbal", "c_acctbal + 1")

VIEWS: dict[str, View] = {
    view.name: view
    for view in (
        *_stars("ss", "store_sales", "ss_addr_sk"),
        *_stars("cs", "catalog_sales", "cs_bill_addr_sk"),
        *_stars("ws", "web_sales", "ws_bill_addr_sk"),
        View(
            "snwf",
            _SNOWFLAKE,
            columns="ca_zip, ca_county, i_item_id, d_qoy, d_year, ws_sales_price",
            group_by="ca_zip, ca_county",
            measures="sum(ws_sales_price) as sales",
            attribute=_COUNTY,
            undeclared=_NOT_IN_THE_SNOWFLAKE,
        ),
        View(
            "snwf_filter",
            _SNOWFLAKE,
            columns="ca_zip, ca_county, i_item_id, ws_sales_price",
            group_by="ca_zip, ca_county",
            measures="sum(ws_sales_price) as sales",
            attribute=_COUNTY,
            where="d_qoy = 1 and d_year = 2000",
            undeclared=_NOT_IN_THE_SNOWFLAKE,
        ),
        View(
            "arbt",
            (
                "store_returns(sr_item_sk, sr_ticket_number) -> store_sales",
                "store_returns(sr_returned_date_sk) -> date_dim d1",
                "store_sales(ss_sold_date_sk) -> date_dim d2",
                "store_sales(ss_item_sk) -> item",
                "store_sales(ss_store_sk) -> store",
                "catalog_sales(cs_item_sk) -> item",
                "catalog_sales(cs_sold_date_sk) -> date_dim d3",
            ),
            columns="i_item_id, i_item_desc, s_store_id, s_store_name, d1.d_moy as returned_moy, d2.d_moy as sold_moy,"
            " d2.d_year as sold_year, d3.d_year as catalog_year, ss_quantity, sr_return_quantity, cs_quantity",
            group_by="i_item_id, i_item_desc, s_store_id, s_store_name",
            measures="sum(ss_quantity) as sold, sum(sr_return_quantity) as returned, sum(cs_quantity) as by_catalog",
            attribute=Attribute("item", "i_item_desc", "concat(coalesce(i_item_desc, ''), '+')"),
            where="ss_customer_sk = sr_customer_sk",
        ),
        View("chain", _CHAIN, _CHAIN_COLUMNS, _CHAIN_GROUPS, _REVENUE, _BALANCE, picked=("h_customer",)),
        View(
            "chain_filter",
            _CHAIN,
            _CHAIN_COLUMNS,
            _CHAIN_GROUPS,
            _REVENUE,
            _BALANCE,
            where="o_orderdate >= date '1993-10-01' and o_orderdate < date '1994-01-01' and l_returnflag = 'R'",
            picked=("h_customer",),
        ),
    )
}

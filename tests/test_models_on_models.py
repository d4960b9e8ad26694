"""A model over another one means the same whether that one is kept by merge or by log."""

from __future__ import annotations

import pytest

from dbt_ivm import names
from dbt_ivm.api import plan_view, table
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog, Key, Table, TableColumn, View
from dbt_ivm.refresh.view import CompiledView, compile_view
from dbt_ivm.render.query import sql_text

ORDERS = table("shop.orders", {"id": "bigint", "customer": "int", "amount": "int"}, primary_key=["id"])
STORAGE, FACADE = RelationName.parse("shop.parent__ivm"), RelationName.parse("shop.parent")


def over(parent: CompiledView, by_log: bool) -> CompiledView:
    """A model that reads the parent's facade as it is in one of the two modes."""
    layout = parent.layout
    columns = (*layout.stored, names.PART, names.SEQ, names.STATE)
    key = Key((*layout.identity, names.PART), "storage")
    stored = Table(STORAGE, tuple(TableColumn(c, "bigint") for c in columns), (key,), live=layout.identity)
    shown = tuple(TableColumn(p.name, "bigint") for p in layout.facade)
    facade = View(
        FACADE, shown, sql_text(parent.facade_select(STORAGE.table(), token=f"{by_log}", live=by_log)), ("shop",), ()
    )
    return compile_view("select * from shop.parent where customer > 0", Catalog.of([facade, stored]))


@pytest.mark.parametrize(
    "sql",
    [
        "select id, customer, amount from shop.orders",
        "select customer, sum(amount) as total, avg(amount) as mean from shop.orders group by 1 having count(*) > 1",
        "select distinct customer from shop.orders",
    ],
)
def test_a_parent_that_moves_to_the_log_does_not_rebuild_its_children(sql: str) -> None:
    parent = compile_view(sql, Catalog.of([ORDERS]))
    merged, logged = over(parent, by_log=False), over(parent, by_log=True)
    assert merged.refusal is None and merged.fingerprint == logged.fingerprint


def test_tombstones_leave_a_parent_that_has_no_identity_any_more() -> None:
    """What the child counted with the opposite sign goes with the opposite sign, whatever the parent is now."""
    parent = compile_view("select id, customer, amount from shop.orders", Catalog.of([ORDERS]))
    columns = (*parent.layout.stored, names.PART, names.SEQ, names.STATE)
    stored = Table(STORAGE, tuple(TableColumn(c, "bigint") for c in columns))
    shown = tuple(TableColumn(p.name, "bigint") for p in parent.layout.facade)
    facade = View(FACADE, shown, sql_text(parent.facade_select(STORAGE.table())), ("shop",), ())
    sql = "select customer, count(*) as n from shop.parent group by customer"
    plan = plan_view(sql, [facade, stored], changes={str(STORAGE): (3, 5)})
    feed = plan.steps[-1].sql.split("TABLE_CHANGES")[0]
    assert "`__ivm_part` = 2" in feed and "THEN -" in feed

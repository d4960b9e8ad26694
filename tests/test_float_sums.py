"""Sums of floating point below other operators are noted: their last digits are not found again for certain."""

from __future__ import annotations

import pytest

from dbt_ivm.api import table
from dbt_ivm.catalog.tables import Catalog
from dbt_ivm.refresh.view import CompiledView, compile_view

TOTALS = "select t.id, s.total from db.t join (select k, {} as total from db.x group by k) s on t.k = s.k"


def compiled(sql: str, key: list[str] | None = None) -> CompiledView:
    tables = [
        table("db.t", {"id": "int", "k": "int"}, primary_key=key or []),
        table("db.x", {"k": "int", "v": "double", "d": "decimal(9,2)"}),
    ]
    return compile_view(sql, Catalog.of(tables))


def notes(sql: str, key: list[str] | None = None) -> list[str]:
    return [n for n in compiled(sql, key).advice if "floating point" in n]


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        (TOTALS.format("sum(v)"), "SUM(x_v)"),
        (TOTALS.format("avg(v) filter (where v > 0)"), "AVG(CASE WHEN x_v > 0 THEN x_v END)"),
        (
            "select k, count(*) as n from (select k, sum(v) as s from db.x group by k) q where s > 1 group by k",
            "SUM(x_v)",
        ),
        ("select k, v, sum(v) over (partition by k) as s from db.x", "SUM(x_v)"),
    ],
)
def test_noted_with_the_column(sql: str, named: str) -> None:
    (note,) = notes(sql)
    assert named in note


@pytest.mark.parametrize(
    "sql",
    [
        "select k, sum(v) as s, avg(v) as a from db.x group by k having sum(v) > 1",  # the stored rows are the old ones
        TOTALS.format("sum(d)"),
        TOTALS.format("max(v)"),
        TOTALS.format("sum(cast(v as decimal(20,4)))"),
        "select id, k from db.t",
    ],
)
def test_noop(sql: str) -> None:
    assert not notes(sql)


def test_keys_are_asked_for_where_there_are_none() -> None:
    assert "declare keys" in notes(TOTALS.format("sum(v)"))[0]
    keyed = "select t.id, (select sum(v) from db.x where x.k = t.k) as total from db.t"
    assert "declare keys" not in notes(keyed, ["id"])[0]

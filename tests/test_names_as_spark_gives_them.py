"""Columns of USING, PIVOT and UNPIVOT: the expected values were read off Spark 4.1."""

from __future__ import annotations

import pytest

from dbt_ivm.api import table
from dbt_ivm.catalog.tables import Catalog
from dbt_ivm.errors import Refusal
from dbt_ivm.frontend import lower
from dbt_ivm.frontend.bind import bind
from dbt_ivm.frontend.parse import parse
from dbt_ivm.frontend.qualify import qualify

CATALOG = Catalog.of(
    [
        table("a", {"id": "int", "k": "string", "x": "int"}),
        table("b", {"id": "int", "k": "string", "y": "int"}),
        table("c", {"id": "int", "z": "int"}),
    ]
)


@pytest.mark.parametrize(
    ("joins", "conditions", "shown"),
    [
        ("a join b using (id) join c using (id)", ["a.id = b.id", "a.id = c.id"], "a.id"),
        ("a left join b using (id) left join c using (id)", ["a.id = b.id", "a.id = c.id"], "a.id"),
        ("a right join b using (id) left join c using (id)", ["a.id = b.id", "b.id = c.id"], "b.id"),
        ("a left join b using (id) right join c using (id)", ["a.id = b.id", "a.id = c.id"], "c.id"),
        (
            "a full join b using (id) full join c using (id)",
            ["a.id = b.id", "COALESCE(a.id, b.id) = c.id"],
            "COALESCE(a.id, b.id, c.id)",
        ),
        ("a left semi join b using (id) join c using (id)", ["a.id = b.id", "a.id = c.id"], "a.id"),
        ("a natural full join b", ["a.id = b.id AND a.k = b.k"], "COALESCE(a.id, b.id)"),
    ],
)
def test_using_compares_with_what_the_joins_so_far_give(joins: str, conditions: list[str], shown: str) -> None:
    query = qualify(bind(parse(f"select id from {joins}"), CATALOG))
    assert [j.args["on"].sql("spark") for j in query.args["joins"]] == conditions
    assert query.selects[0].this.sql("spark") == shown


def test_a_written_coalesce_stays() -> None:
    query = qualify(bind(parse("select coalesce(a.id, b.id) as i from a right join b using (id)"), CATALOG))
    assert query.selects[0].this.sql("spark") == "COALESCE(a.id, b.id)"


@pytest.mark.parametrize(
    ("pivot", "names"),
    [
        ("sum(x) for k in ('p', 'q' as Qq)", ["id", "p", "qq"]),
        ("sum(x) as s, max(x) for k in ('p' as Xy, 'q')", ["id", "xy_s", "xy_max(x)", "q_s", "q_max(x)"]),
        ("sum(x), count(*) for id in (1, -2)", ["k", "1_sum(x)", "1_count(1)", "-2_sum(x)", "-2_count(1)"]),
        ("sum(x) for (id, k) in ((1, 'p') as one, (2, null))", ["one", "{2, null}"]),
    ],
)
def test_columns_of_pivot(pivot: str, names: list[str]) -> None:
    plan = lower(f"select * from a pivot ({pivot})", CATALOG).plan
    assert list(plan.column_names) == names


def test_pivot_by_equal_values_is_refused() -> None:
    """Spark fills neither of their columns."""
    for values in ("1 as one, 1 as two", "1, '01'", "1 as one, 1.2 as two"):
        with pytest.raises(Refusal, match="twice"):
            lower(f"select * from a pivot (sum(x) for id in ({values}))", CATALOG)


def test_unpivot_shows_names_as_they_are_spelled() -> None:
    text = lower("select n from a unpivot ((u, v) for n in ((Id, X) as `A b`, (a.X, iD)))", CATALOG).plan.explain()
    assert "'A b'" in text and "'X_iD'" in text

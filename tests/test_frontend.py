"""Names in all the ways people write them, views expanded, and queries that are the user's to fix."""

from __future__ import annotations

import pytest

from dbt_ivm.api import table
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog, Table, TableColumn, View
from dbt_ivm.errors import Refusal, UserError
from dbt_ivm.frontend import Lowered, lower
from dbt_ivm.operators import Join, Operator, Scan, Windowing
from dbt_ivm.refresh.view import compile_view

TABLES: tuple[Table, ...] = (
    table("shop.fact", {"id": "bigint", "Dim_Id": "int", "amount": "decimal(10,2)"}, primary_key=["id"]),
    table("shop.dim", {"id": "int", "name": "string"}, primary_key=["id"]),
    table("spark_catalog.other.fact", {"id": "int", "odd name": "string"}),
)


def view(name: str, sql: str, columns: tuple[str, ...], output: tuple[str, ...] = ()) -> View:
    return View(
        RelationName.parse(name), tuple(TableColumn(c, "") for c in columns), sql, namespace=("shop",), output=output
    )


def lowered(sql: str, *views: View) -> Lowered:
    return lower(sql, Catalog.of((*TABLES, *views)))


def scans(plan: Operator) -> list[str]:
    own = [str(plan.source)] if isinstance(plan, Scan) else []
    return own + [s for below in plan.inputs for s in scans(below)]


def joins(plan: Operator) -> list[str]:
    own = [plan.describe()] if isinstance(plan, Join) else []
    return own + [j for below in plan.inputs for j in joins(below)]


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select ID, Amount from Shop.FACT", ("id", "amount")),
        ("select `id`, `DIM_ID` from `shop`.`fact`", ("id", "dim_id")),
        ("select id from spark_catalog.shop.fact", ("id",)),
        ("select shop.fact.id from shop.fact", ("id",)),
        ("select fact.id from shop.fact", ("id",)),
        ("select F.id as `Id` from shop.fact f", ("id",)),
        ("select `odd name` as odd from other.fact", ("odd",)),
        ("select `odd name` as odd from spark_catalog.other.fact", ("odd",)),
        ("select * from shop.fact", ("id", "dim_id", "amount")),
        ("select f.*, d.name from shop.fact f join shop.dim d on f.dim_id = d.id", ("id", "dim_id", "amount", "name")),
        ("select * from shop.fact join shop.dim using (id)", ("id", "dim_id", "amount", "name")),
        ("select id, id + 1 as next, next * 2 as twice from shop.fact", ("id", "next", "twice")),
        ("with c(x, y) as (select id, amount from shop.fact) select y, x from c", ("y", "x")),
        ("select x.k from (select id as k from shop.fact) as x", ("k",)),
        ("(select id from shop.fact)", ("id",)),
        ("select id from shop.fact;", ("id",)),
    ],
)
def test_output_columns(sql: str, columns: tuple[str, ...]) -> None:
    assert lowered(sql).plan.column_names == columns


def test_two_part_name_finds_the_right_schema() -> None:
    assert scans(lowered("select a.id, b.id as other from shop.fact a join other.fact b on a.id = b.id").plan) == [
        "shop.fact",
        "spark_catalog.other.fact",
    ]


def test_using_joins_on_the_named_column_only() -> None:
    assert joins(lowered("select id from shop.fact join shop.dim using (id)").plan) == ["Join ON fact_id = dim_id"]


def test_a_common_table_expression_shadows_a_table() -> None:
    sql = "with fact as (select id from shop.dim) select id from fact"
    assert scans(lowered(sql).plan) == ["shop.dim"]


def test_a_qualified_name_is_never_a_common_table_expression() -> None:
    sql = "with fact as (select id from shop.dim) select a.id from fact a join shop.fact b on a.id = b.id"
    assert scans(lowered(sql).plan) == ["shop.dim", "shop.fact"]


def test_an_inner_common_table_expression_hides_the_outer_one() -> None:
    sql = """
        with c as (select id from shop.dim)
        select x.id from (with c as (select id from shop.fact) select id from c) x join c on c.id = x.id
    """
    assert scans(lowered(sql).plan) == ["shop.fact", "shop.dim"]


def test_ordinals_name_select_items() -> None:
    plan = lowered("select dim_id + 1 as k, count(*) as n from shop.fact group by 1").plan
    assert "group_key" in plan.explain()


def test_group_by_alias() -> None:
    plan = lowered("select dim_id as d, count(*) as n from shop.fact group by d").plan
    assert "Aggregate BY fact_dim_id" in plan.explain()


def test_a_table_is_listed_once() -> None:
    found = lowered("select a.id from shop.fact a join shop.fact b on a.id = b.id")
    assert [str(t.name) for t in found.tables] == ["shop.fact"]


# views


def test_a_view_stands_for_its_query() -> None:
    v = view("shop.v", "select id, amount * 2 as twice from fact where amount > 1", ("id", "twice"))
    found = lowered("select twice from shop.v where id = 3", v)
    assert scans(found.plan) == ["shop.fact"]
    assert [str(t.name) for t in found.tables] == ["shop.fact"]


def test_a_column_list_renames_the_view_s_columns() -> None:
    v = view("shop.v", "select id, amount from shop.fact", ("k", "a"), output=("id", "amount"))
    plan = lowered("select a, k from shop.v", v).plan
    assert plan.column_names == ("a", "k")
    assert "fact_amount" in plan.explain()


def test_views_over_views() -> None:
    inner = view("shop.inner_v", "select id as k, dim_id as d from fact", ("k", "d"))
    outer = view("shop.outer_v", "select d, count(*) as n from inner_v group by d", ("dd", "nn"), output=("d", "n"))
    plan = lowered("select x.nn, y.name from shop.outer_v x join shop.dim y on x.dd = y.id", inner, outer).plan
    assert scans(plan) == ["shop.fact", "shop.dim"]


def test_a_view_used_twice_gets_separate_columns() -> None:
    v = view("shop.v", "select id from fact", ("id",))
    plan = lowered("select a.id, b.id as other from shop.v a join shop.v b on a.id = b.id", v).plan
    assert scans(plan) == ["shop.fact", "shop.fact"]


def test_a_view_that_numbers_equal_rows_numbers_them_once() -> None:
    """Mentions that read different columns would put equal rows in different orders."""
    v = view("shop.v", "select id, amount, row_number() over (order by dim_id) as n from fact", ("id", "amount", "n"))
    sql = "select a.id, b.amount from shop.v a join shop.v b on a.n = b.n"
    rows = compile_view(sql, Catalog.of((*TABLES, v))).layout.rows
    assert rows is not None
    assert len({str(f.call) for w in windows(rows) for f in w.functions}) == 1


def windows(plan: Operator) -> list[Windowing]:
    return [*([plan] if isinstance(plan, Windowing) else []), *(w for below in plan.inputs for w in windows(below))]


def test_names_in_a_view_do_not_see_the_query_s_common_table_expressions() -> None:
    v = view("shop.v", "select id from fact", ("id",))
    sql = "with fact as (select id from shop.dim) select a.id from shop.v a join fact b on a.id = b.id"
    assert scans(lowered(sql, v).plan) == ["shop.fact", "shop.dim"]


def test_a_view_that_cannot_be_parsed_is_refused_by_name() -> None:
    with pytest.raises(Refusal, match=r"shop\.v"):
        lowered("select id from shop.v", view("shop.v", "select id frm fact where where", ("id",)))


def test_a_view_that_lost_a_column_is_refused() -> None:
    with pytest.raises(Refusal, match="has lost column"):
        lowered("select id from shop.v", view("shop.v", "select id from fact", ("id", "gone")))


def test_a_refusal_inside_a_view_keeps_its_reason() -> None:
    with pytest.raises(Refusal) as caught:
        lowered("select id from shop.v", view("shop.v", "select id from fact limit 3", ("id",)))
    assert caught.value.construct == "limit"


# the user's move


@pytest.mark.parametrize(
    ("sql", "code", "named"),
    [
        ("select id, id from shop.fact", "IVM_DUPLICATE_COLUMN", "id"),
        ("select * from shop.fact f join shop.dim d on f.dim_id = d.id", "IVM_DUPLICATE_COLUMN", "id"),
        ("select id, ID as Id from shop.fact", "IVM_DUPLICATE_COLUMN", "id"),
        ("select id, amount + 1 from shop.fact", "IVM_UNNAMED_COLUMN", "column 2"),
        ("select count(*) from shop.fact", "IVM_UNNAMED_COLUMN", "column 1"),
        ("select id as __IVM_seq from shop.fact", "IVM_RESERVED_NAME", "__IVM_seq"),
        ("select wrong from shop.fact", "IVM_UNRESOLVED", "wrong"),
        ("select d.id from shop.fact f", "IVM_UNRESOLVED", "d"),
        ("select id from shop.fact f cross join shop.dim d", "IVM_UNRESOLVED", "id"),
        (
            "select f.id from shop.fact f left semi join shop.dim d on d.id = dim_id where region = 'n'",
            "IVM_UNRESOLVED",
            "region",
        ),
        ("select f.id, d.name from shop.fact f left anti join shop.dim d on d.id = dim_id", "IVM_UNRESOLVED", "d.name"),
        ("select id from shop.missing", "IVM_UNKNOWN_RELATION", "shop.missing"),
        ("select id from shop.fact union all select id, name from shop.dim", "IVM_UNION_WIDTH", "1 and 2"),
        ("select 1 as x; select 2 as x", "IVM_NOT_ONE_QUERY", "2"),
        ("delete from shop.fact", "IVM_NOT_A_QUERY", "DELETE"),
        ("", "IVM_NOT_ONE_QUERY", "0"),
        ("select id as x from shop.fact group by id, 3", "IVM_UNRESOLVED", "3"),
        ("select sum(amount) from shop.fact", "IVM_UNNAMED_COLUMN", "SUM(amount)"),
    ],
)
def test_wrong_queries(sql: str, code: str, named: str) -> None:
    with pytest.raises(UserError) as caught:
        lowered(sql)
    assert caught.value.code == code
    assert named in str(caught.value)
    assert "__ivm_relation_" not in str(caught.value)

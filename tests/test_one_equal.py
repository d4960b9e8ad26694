"""Which equalities of different types look up one row: edges, the key of a row, how marks and groups are made."""

from __future__ import annotations

import pytest

from dbt_ivm import plan_view, table
from dbt_ivm.catalog.tables import Catalog
from dbt_ivm.one_equal import compared_as, equals_one
from dbt_ivm.refresh.plan import RefreshPlan
from dbt_ivm.refresh.view import compile_view

TABLES = [
    table("db.p", {"id": "int", "a": "int", "s": "string", "big": "bigint"}, primary_key=["id"]),
    table("db.texts", {"k": "string", "w": "int"}, primary_key=["k"]),
    table("db.numbers", {"k": "int", "w": "int"}, primary_key=["k"]),
]


def planned(sql: str) -> RefreshPlan:
    plan = plan_view(sql, TABLES, changes={str(t.name): (0, 1) for t in TABLES})
    assert plan.strategy == "incremental", plan.reason
    return plan


def looks_up(plan: RefreshPlan) -> bool:
    """Whether rows that reference touched keys are looked for."""
    return "__ivm_touched_1" in plan.explain()


def identity(sql: str) -> tuple[str, ...]:
    assert planned(sql).strategy == "incremental"
    return compile_view(sql, Catalog.of(TABLES)).layout.identity


@pytest.mark.parametrize("join", ["join", "left join"])
def test_a_number_is_no_reference_to_a_text_key(join: str) -> None:
    sql = f"select p.id, t.w from db.p {join} db.texts t on p.a = t.k"
    assert identity(sql) == ("id", "__ivm_key_1") and not looks_up(planned(sql))


@pytest.mark.parametrize("join", ["join", "left join"])
@pytest.mark.parametrize("reference", ["a", "big", "s"])
def test_a_number_and_a_text_refer_to_a_number(join: str, reference: str) -> None:
    sql = f"select p.id, n.w from db.p {join} db.numbers n on p.{reference} = n.k"
    assert identity(sql) == ("id",) and looks_up(planned(sql))


def test_a_constant_holds_a_key_only_where_one_value_equals_it() -> None:
    sql = "select p.id, t.w from db.p left join db.{} t on t.k = {}"
    assert identity(sql.format("texts", "1")) == ("id", "__ivm_key_1")
    assert identity(sql.format("texts", "'1'")) == identity(sql.format("numbers", "'1'")) == ("id",)


def test_texts_are_marked_and_grouped_as_numbers() -> None:
    mark = planned("select id, a in (select k from db.texts) as m from db.p")
    assert mark.steps and "CAST(e" in mark.steps[-1].sql and "AS BIGINT)" in mark.steps[-1].sql
    scalar = planned("select id, (select sum(w) from db.texts t where t.k = p.a) as m from db.p")
    assert "CAST(t_k AS BIGINT) AS group_key" in scalar.explain()


def test_without_a_common_type_marks_are_two_lists_and_groups_are_given_values() -> None:
    unknown = "xpath_string(s, 'a')"
    mark = planned(f"select id, {unknown} in (select k from db.texts) as m from db.p")
    assert "LEFT ANTI JOIN" in mark.steps[-1].sql
    scalar = planned(f"select id, (select sum(w) from db.texts t where t.k = {unknown}) as m from db.p")
    assert "Distinct given_p_s" in scalar.explain()


@pytest.mark.parametrize(
    "pair",
    ["int bigint", "bigint int", "float double", "double float", "bigint double", "double int", "float smallint",
     "string date", "string int", "varchar(3) string", "char(3) string", "date timestamp", "int decimal(9,2)",
     "decimal(9,2) int", "decimal(9,2) decimal(18,4)", "decimal(38,10) double", "double decimal(15,2)"],
)  # fmt: skip
def test_one_equal(pair: str) -> None:
    assert equals_one(*pair.split())


@pytest.mark.parametrize(
    "value, key, common",
    [
        ("int", "string", "bigint"), ("date", "varchar(9)", "date"), ("timestamp", "string", "timestamp"),
        ("timestamp", "date", "timestamp"), ("timestamp", "timestamp_ntz", "timestamp"), ("double", "string", "double"),
        ("double", "bigint", "double"), ("double", "decimal(16,2)", "double"), ("string", "decimal(16,2)", "double"),
        ("decimal(9,2)", "string", "double"), ("float", "int", ""), ("float", "string", ""), ("int", "date", ""),
        ("decimal(38,0)", "decimal(38,10)", ""), ("", "", ""), ("", "int", ""), ("int", "", ""),
    ],
)  # fmt: skip
def test_several_may_be_equal(value: str, key: str, common: str) -> None:
    assert not equals_one(value, key) and compared_as(value, key) == common

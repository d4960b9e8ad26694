"""Forms of values as text, and texts that travel in statements."""

from __future__ import annotations

import pytest
from sqlglot import exp

from dbt_ivm.catalog.describe import read_description
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.comparable import comparable, is_comparable
from dbt_ivm.delta.carried import is_exact
from dbt_ivm.frontend.parse import parse
from dbt_ivm.nested_types import is_cut, struct_fields
from dbt_ivm.refresh.apply.staging import Bound
from dbt_ivm.refresh.state import SourceState, State
from dbt_ivm.render.query import sql_text


@pytest.mark.parametrize(
    ("kind", "exact", "equal"),
    [
        ("double", "CAST(x AS STRING)", None),
        ("array<float>", "TRANSFORM(x, __ivm_item_1 -> CAST(__ivm_item_1 AS STRING))", None),
        ("map<int,string>", "SORT_ARRAY(MAP_ENTRIES(x))", "SORT_ARRAY(MAP_ENTRIES(x))"),
        (
            "array<map<int,map<string,int>>>",
            "TRANSFORM(x, __ivm_item_1 -> SORT_ARRAY(TRANSFORM(MAP_ENTRIES(__ivm_item_1), __ivm_item_2 -> "
            "NAMED_STRUCT('c1', __ivm_item_2.`key`, 'c2', SORT_ARRAY(MAP_ENTRIES(__ivm_item_2.`value`))))))",
            None,
        ),
        (
            "struct<a:int,b b:double>",
            "CASE WHEN NOT x IS NULL THEN NAMED_STRUCT('c1', x.`a`, 'c2', CAST(x.`b b` AS STRING)) END",
            None,
        ),
        ("variant", "NAMED_STRUCT('c1', TO_JSON(x), 'c2', SCHEMA_OF_VARIANT(x))", None),
        *((kind, None, None) for kind in ("string", "binary", "decimal(38,10)", "array<struct<a:date>>", "", "void")),
    ],
)
def test_form(kind: str, exact: str | None, equal: str | None) -> None:
    made = comparable(exp.column("x"), kind)
    assert (made.sql("spark") if made is not None else None) == exact
    coarse = comparable(exp.column("x"), kind, exact=False)
    assert is_comparable(kind) == (coarse is None)
    if equal is not None:
        assert coarse is not None and coarse.sql("spark") == equal


def test_names_of_fields_are_kept() -> None:
    rows = [{"col_name": "s", "data_type": "struct<First Name: int, b:decimal(5, 2)>"}]
    (column,) = read_description(RelationName.parse("db.t"), rows).columns
    assert struct_fields(column.type) == (("first name", "int"), ("b", "decimal(5,2)"))
    assert is_cut("struct<a:int,... 6 more fields>") and not is_cut(column.type)
    written = "SELECT NAMED_STRUCT('Key', a, 'B c', PARSE_JSON(t)) AS x FROM t"
    assert parse("select named_struct('Key', a, 'B c', parse_json(t)) as x from t").sql("spark") == written


def test_texts_do_not_name_settings() -> None:
    """Spark replaces ${name} wherever it stands in a statement."""
    state = State(1, "f", {"t": SourceState(1, "c")}, storage_version=1, seen={"k": ("${a}", "z")})
    assert "${" not in state.to_json() and State.from_row(state.to_json(), None).seen == state.seen
    assert "${" not in sql_text(Bound("k", "string", "${a}", "z").holds())


def test_texts_that_did_not_arrive_are_not_carried() -> None:
    assert is_exact((("a", None, "1"),)) and not is_exact((("a\ufffd", "1"),))

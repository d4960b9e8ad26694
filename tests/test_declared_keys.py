"""Keys as dbt's manifest has them: meta over constraints over tests; composite keys; ref and source in foreign keys."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_ivm.catalog.declared import DeclaredKeys, read_project_keys
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.errors import UserError


def node(name: str, kind: str = "source", **more: Any) -> dict[str, Any]:
    return {
        "unique_id": f"{kind}.shop.{name}", "resource_type": kind, "name": name, "source_name": "raw",
        "package_name": "shop", "relation_name": f"`db`.`{name}`", **more,
    }  # fmt: skip


def keys_of(target: dict[str, Any], *others: dict[str, Any], tests: tuple[dict[str, Any], ...] = ()) -> DeclaredKeys:
    return read_project_keys([target, *others], tests).of(RelationName.parse(target["relation_name"]))


def column(*types: str, **more: Any) -> dict[str, Any]:
    return {"constraints": [{"type": t, **more} for t in types]}


def test_column_and_model_constraints() -> None:
    keys = keys_of(node("orders", columns={"id": column("primary_key"), "code": column("unique", "not_null")}))
    assert [k.columns for k in keys.keys] == [("id",), ("code",)]
    composite = node("lines", "model", constraints=[{"type": "primary_key", "columns": ["order_id", "line"]}])
    assert [k.columns for k in keys_of(composite).keys] == [("order_id", "line")]


def test_unique_identifies_only_where_null_is_excluded() -> None:
    assert keys_of(node("orders", columns={"code": column("unique")})).keys == ()


def test_meta_wins_and_composite_keys_on_sources() -> None:
    meta = {"ivm": {"primary_key": ["a", "b"], "unique": [["c"]]}}
    declared = keys_of(node("orders", config={"meta": meta}, columns={"b": column("primary_key")}))
    assert [(k.columns, k.origin) for k in declared.keys] == [
        (("a", "b"), "meta.ivm.primary_key"),
        (("c",), "meta.ivm.unique"),
        (("b",), "primary_key constraint"),
    ]


@pytest.mark.parametrize(
    "to", ["source('raw', 'customer')", 'source("raw","customer")', "{{ source('raw','customer') }}"]
)
def test_foreign_key_to_a_source(to: str) -> None:
    declared = keys_of(node("orders", columns={"c": column("foreign_key", to=to, to_columns=["id"])}), node("customer"))
    (foreign,) = declared.foreign_keys
    assert (foreign.columns, str(foreign.to), foreign.to_columns) == (("c",), "db.customer", ("id",))


def test_foreign_key_to_a_model_with_package_and_version() -> None:
    models = [
        node("dim", "model", version=1, latest_version=2, relation_name="db.dim_v1"),
        node("dim", "model", version=2, latest_version=2, relation_name="db.dim_v2"),
    ]
    for to, expected in (("ref('dim')", "dim_v2"), ("ref('shop', 'dim', v=1)", "dim_v1")):
        entry = {"columns": ["a", "b"], "to": to, "to_columns": ["x", "y"]}
        declared = keys_of(node("orders", config={"meta": {"ivm": {"foreign_keys": [entry]}}}), *models)
        assert declared.foreign_keys[0].to.name == expected


def test_tests_count_only_when_trusted() -> None:
    def test_of(name: str, **arguments: Any) -> dict[str, Any]:
        return {
            "attached_node": "model.shop.orders", "depends_on": {"nodes": ["model.shop.orders"]}, "config": {},
            "test_metadata": {"name": name, "kwargs": {"column_name": "id", **arguments}},
        }  # fmt: skip

    tests = (test_of("unique"), test_of("not_null"), test_of("relationships", to="ref('dim')", field="k"))
    dim = node("dim", "model")
    assert keys_of(node("orders", "model"), dim, tests=tests) == DeclaredKeys()
    trusted = keys_of(node("orders", "model", config={"meta": {"ivm": {"trust_tests": True}}}), dim, tests=tests)
    assert [k.columns for k in trusted.keys] == [("id",)] and trusted.foreign_keys[0].to_columns == ("k",)


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"ivm": "strict"}, "must be a mapping"),
        ({"ivm": {"primary_key": 5}}, "must be a column or a list of columns"),
        ({"ivm": {"foreign_keys": [{"columns": ["a"], "to": "ref('nobody')", "to_columns": ["x"]}]}}, "does not exist"),
        ({"ivm": {"foreign_keys": [{"columns": ["a"], "to": "db.t", "to_columns": ["x", "y"]}]}}, "pairs"),
    ],
)
def test_mistakes_are_named(meta: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        keys_of(node("orders", config={"meta": meta}))


def test_names_match_across_quoting_case_and_catalog() -> None:
    project = read_project_keys([node("Orders", columns={"id": column("primary_key")})])
    assert project.of(RelationName.parse("spark_catalog.DB.orders")).keys
    assert not project.of(RelationName.parse("other.orders")).keys

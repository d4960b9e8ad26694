"""Declared foreign keys on real dbt, Spark and Delta: what is relied on, checked and told, and that rows stay exact."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spark.project import Project

PK = {"name": "id", "constraints": [{"type": "primary_key"}]}


def references(column: str, table: str) -> dict[str, Any]:
    to = f"source('raw', '{table}')"
    return {"name": column, "constraints": [{"type": "foreign_key", "to": to, "to_columns": ["id"]}]}


DETAIL = """
select l.id, o.day, c.name, n.label, p.title, l.amount
from {{ source('raw','line') }} l
join {{ source('raw','orders') }} o on l.order_id = o.id
join {{ source('raw','customer') }} c on o.customer_id = c.id
join {{ source('raw','nation') }} n on c.nation_id = n.id
join {{ source('raw','product') }} p on l.product_id = p.id
"""
GROUPS = """
select n.label, p.title, sum(l.amount) as total, count(*) as n, max(o.day) as last
from {{ source('raw','line') }} l, {{ source('raw','orders') }} o, {{ source('raw','customer') }} c,
     {{ source('raw','nation') }} n, {{ source('raw','product') }} p
where l.order_id = o.id and o.customer_id = c.id and c.nation_id = n.id and l.product_id = p.id and l.amount > 0
group by n.label, p.title
"""
LEFT_DETAIL = """
select l.id, o.day, c.name, n.label, coalesce(p.title, 'none') as title, l.amount
from {{ source('raw','line') }} l
left join {{ source('raw','orders') }} o on l.order_id = o.id
left join {{ source('raw','customer') }} c on o.customer_id = c.id
left join {{ source('raw','nation') }} n on c.nation_id = n.id
left join {{ source('raw','product') }} p on l.product_id = p.id and p.title <> 'pad' and l.amount < 100
"""
LEFT_GROUPS = """
select c.name, p.title, sum(l.amount) as total, count(*) as n, count(o.id) as with_order
from {{ source('raw','line') }} l
left join {{ source('raw','orders') }} o on l.order_id = o.id
left join {{ source('raw','customer') }} c on o.customer_id = c.id
join {{ source('raw','product') }} p on l.product_id = p.id
where o.day is null or o.day > 10
group by c.name, p.title
"""
QUERIES = {"detail": DETAIL, "groups": GROUPS, "left_detail": LEFT_DETAIL, "left_groups": LEFT_GROUPS}


def snowflake(p: Project, *variants: tuple[str, dict[str, Any]]) -> list[str]:
    """line → orders → customer → nation, line → product; models of their rows (detail_…) and of groups."""
    p.source("nation", "id int, label string", "(1,'fr'),(2,'de'),(3,'it')", columns=[PK])
    p.source("customer", "id int, nation_id int, name string", "(1,1,'ann'),(2,2,'bob'),(3,null,'cy')",
             columns=[PK, references("nation_id", "nation")])  # fmt: skip
    p.source("orders", "id int, customer_id int, day int", "(1,1,10),(2,1,11),(3,2,12),(4,3,13)",
             columns=[PK, references("customer_id", "customer")])  # fmt: skip
    p.source("product", "id int, title string", "(1,'pen'),(2,'ink'),(3,'pad')", columns=[PK])
    p.source("line", "id int, order_id int, product_id int, amount int",
             "(1,1,1,5),(2,1,2,6),(3,2,1,7),(4,3,2,8),(5,4,2,9),(6,null,1,1),(7,3,null,1)",
             columns=[PK, references("order_id", "orders"), references("product_id", "product")])  # fmt: skip
    for name, options in variants:
        p.model(name, QUERIES[name.rsplit("_", 1)[0]], meta={"ivm": {"refresh": "strict", **options}})
    return [name for name, _ in variants]


def statuses(result: dict[str, Any]) -> dict[str, str]:
    """Status per edge, by the referencing table and column."""
    return {edge["edge"].split(" -> ")[0].split(".")[1]: edge["status"] for edge in result["foreign_keys"]}


def refreshed(p: Project, names: list[str], *changes: str) -> dict[str, dict[str, Any]]:
    for change in changes:
        p.sql(change.format(s=p.schema))
    results = p.run()
    assert {n: results[n]["strategy"] for n in names} == dict.fromkeys(names, "incremental")
    for name in names:
        p.assert_equal(name)
    return results


def test_keys_that_hold(project: Project) -> None:
    p = project
    trust, off, log = {"foreign_keys": "trust"}, {"foreign_keys": "off"}, {"apply": "log"}
    names = snowflake(p, ("detail_verify", {}), ("detail_log", log), ("groups_trust", trust), ("groups_off", off))
    first = p.run()
    edges = {"line(order_id)", "line(product_id)", "orders(customer_id)", "customer(nation_id)"}
    assert statuses(first["detail_verify"]) == dict.fromkeys(edges, "holds")
    assert statuses(first["groups_trust"]) == dict.fromkeys(edges, "trusted")
    assert statuses(first["groups_off"]) == dict.fromkeys(edges, "off")

    # every table gains and loses rows, and nothing references a key that was replaced
    results = refreshed(
        p, names,
        "insert into {s}.nation values (4,'es')", "insert into {s}.customer values (4,4,'dee'),(5,1,'eve')",
        "insert into {s}.product values (4,'cup')", "insert into {s}.orders values (5,4,14),(6,5,15)",
        "insert into {s}.line values (8,5,4,20),(9,6,1,21),(10,2,4,22)",
        "delete from {s}.line where id in (4, 7)", "delete from {s}.orders where id = 3",
        "delete from {s}.customer where id = 2", "delete from {s}.nation where id in (2, 3)",
        "delete from {s}.product where id = 3",
    )  # fmt: skip
    assert statuses(results["detail_verify"]) == dict.fromkeys(edges, "holds")
    assert statuses(results["detail_log"]) == dict.fromkeys(edges, "holds")

    # attributes of referenced rows change at the bottom and in the middle: the guard does not hold
    results = refreshed(
        p, names, "update {s}.nation set label = 'FR' where id = 1", "update {s}.orders set day = 99 where id = 1"
    )
    assert statuses(results["detail_verify"]) == {
        "line(order_id)": "touched 1", "line(product_id)": "holds", "orders(customer_id)": "holds",
        "customer(nation_id)": "touched 1",
    }  # fmt: skip
    touched = {e["edge"].split("(")[0].split(".")[1]: e["touched"] for e in results["detail_verify"]["foreign_keys"]}
    assert touched["customer"] == 1

    # a key goes and comes back with other values; another one comes back as it was
    results = refreshed(
        p, names,
        "delete from {s}.product where id in (1, 2)", "insert into {s}.product values (1,'PEN'),(2,'ink')",
    )  # fmt: skip
    assert statuses(results["detail_verify"])["line(product_id)"] == "touched 1"
    assert {r["strategy"] for r in p.run().values()} == {"none"}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, list[str]]:
    p = Project(tmp_path_factory.mktemp("broken"))
    names = snowflake(p, ("detail_verify", {}), ("groups_log", {"apply": "log"}))
    p.run()
    return p, names


def test_references_that_dangle_and_are_mended(broken: tuple[Project, list[str]]) -> None:
    p, names = broken
    results = refreshed(p, names, "insert into {s}.line values (20,77,1,5),(21,1,1,5)")
    for model in names:
        assert statuses(results[model])["line(order_id)"] == 'violated 1, e.g. {"order_id":77}'
        assert statuses(results[model])["line(product_id)"] == "holds"
    # what was missing comes: the dangling row gets its order although no line changed
    results = refreshed(p, names, "insert into {s}.orders values (77,1,50)")
    assert statuses(results["groups_log"])["line(order_id)"] == "holds"
    # a referenced row is deleted, in the middle of the tree
    results = refreshed(p, names, "delete from {s}.customer where id = 1")
    assert statuses(results["detail_verify"])["orders(customer_id)"].startswith("violated 3")
    results = refreshed(p, names, "insert into {s}.customer values (1,2,'ann again')")
    assert statuses(results["detail_verify"])["orders(customer_id)"] == "holds"
    # appears and disappears between two refreshes
    results = refreshed(p, names, "insert into {s}.line values (23,88,1,5)", "delete from {s}.line where id = 23",
                        "delete from {s}.product where id = 1", "insert into {s}.product values (1,'pen')",
                        "insert into {s}.line values (24,1,1,6)")  # fmt: skip
    assert set(statuses(results["detail_verify"]).values()) == {"holds"}
    # NULL in a primary key is referenced by nobody
    results = refreshed(p, names, "insert into {s}.product values (null,'nothing')",
                        "insert into {s}.line values (25,1,null,6)")  # fmt: skip
    assert statuses(results["detail_verify"])["line(product_id)"] == "holds"


def test_a_doubled_referenced_key(broken: tuple[Project, list[str]]) -> None:
    """Groups stay exact by the same delta; rows identified by the line's key are rebuilt without that key, once."""
    p, names = broken
    for name in names:
        if name.startswith("detail"):
            p.model(name, DETAIL)
    p.sql(f"insert into {p.schema}.product values (2,'ink too')")
    results = p.run()
    assert results["groups_log"]["strategy"] == "incremental"
    assert statuses(results["groups_log"])["line(product_id)"].startswith("violated 1, referenced keys of several")
    assert results["detail_verify"]["strategy"] == "full" and "product (id)" in results["detail_verify"]["reason"]
    for name in names:
        p.assert_equal(name)
    p.sql(f"update {p.schema}.product set title = 'INK' where title = 'ink too'")
    p.sql(f"insert into {p.schema}.line values (30,1,2,6)")
    results = p.run()
    assert {r["strategy"] for r in results.values()} == {"incremental"}
    for name in names:
        p.assert_equal(name)


def test_error_instead_of_degrade(project: Project) -> None:
    p, s = project, project.schema
    names = snowflake(p, ("groups_error", {"on_key_violation": "error"}))
    p.sql(f"insert into {s}.line values (20,77,1,5)")
    results = p.run(expect_success=False)  # there at the first build
    assert all("IVM_KEY_VIOLATION" in r["message"] and "77" in r["message"] for r in results.values())
    assert not p.sql(f"show tables in {s} like 'groups_error*'")
    p.sql(f"delete from {s}.line where id = 20")
    p.run()
    before = p.rows("groups_error")
    p.sql(f"delete from {s}.orders where id = 1")
    results = p.run(expect_success=False)
    assert all("IVM_KEY_VIOLATION" in r["message"] and "line(order_id)" in r["message"] for r in results.values())
    assert p.rows("groups_error") == before, "nothing was written"
    p.sql(f"insert into {s}.orders values (1,2,10)")
    assert {r["strategy"] for r in p.run().values()} == {"incremental"}
    for name in names:
        p.assert_equal(name)


def test_a_reference_that_dangled_at_the_first_build(project: Project) -> None:
    p = project
    names = snowflake(p, ("groups_verify", {}))
    p.sql(f"insert into {p.schema}.line values (20,77,1,5)")
    first = p.run()
    assert statuses(first["groups_verify"])["line(order_id)"].startswith("violated 1, e.g.")
    for name in names:
        p.assert_equal(name)
    results = refreshed(p, names, "insert into {s}.orders values (77,1,50)")
    assert set(statuses(results["groups_verify"]).values()) == {"holds"}


def test_models_are_referenced_too(project: Project) -> None:
    """An edge into a model that is incremental itself: its storage table proves the key."""
    p, s = project, project.schema
    p.source("orders", "id int, customer_id int, amount int", "(1,1,5),(2,2,6)", columns=[PK])
    p.source("line", "id int, customer_id int", "(1,1),(2,2)", columns=[PK, {
        "name": "customer_id", "constraints": [
            {"type": "foreign_key", "to": "ref('totals')", "to_columns": ["customer_id"]}]}])  # fmt: skip
    p.model("totals", "select customer_id, sum(amount) as total from {{ source('raw','orders') }} group by customer_id")
    p.model("lines", "select l.id, t.total from {{ source('raw','line') }} l "
                     "join {{ ref('totals') }} t on l.customer_id = t.customer_id")  # fmt: skip
    first = p.run()
    assert [e["status"] for e in first["lines"]["foreign_keys"]] == ["holds"]
    p.sql(f"update {s}.orders set amount = 50 where id = 1")
    p.sql(f"insert into {s}.line values (3,1),(4,9)")
    results = p.run()
    assert results["lines"]["strategy"] == "incremental" and results["lines"]["way"] == "merge by key"
    assert results["lines"]["foreign_keys"][0]["status"].startswith("violated 1")
    p.assert_equal("lines")


def test_left_joins_along_foreign_keys(project: Project) -> None:
    """Rows without a match keep NULLs, whatever happens to the keys; statuses and ways are those of lookups."""
    p = project
    trust, off, log = {"foreign_keys": "trust"}, {"foreign_keys": "off"}, {"apply": "log"}
    names = snowflake(p, ("left_detail_verify", {}), ("left_detail_log", log), ("left_groups_off", off),
                      ("left_groups_verify", {}), ("left_detail_trust", trust))  # fmt: skip
    first = p.run()
    edges = {"line(order_id)", "line(product_id)", "orders(customer_id)", "customer(nation_id)"}
    assert statuses(first["left_detail_verify"]) == dict.fromkeys(edges, "holds")
    assert statuses(first["left_detail_trust"]) == dict.fromkeys(edges, "trusted")
    for name in names:
        p.assert_equal(name)

    # facts and referenced rows are only added, nothing dangles: along foreign keys this only adds rows
    results = refreshed(
        p, names, "insert into {s}.nation values (4,'es')", "insert into {s}.customer values (4,4,'dee')",
        "insert into {s}.orders values (5,4,14)", "insert into {s}.line values (8,5,1,20),(9,null,1,21),(10,5,null,1)",
    )  # fmt: skip
    assert results["left_detail_verify"]["way"] == "append" and results["left_detail_trust"]["way"] == "append"
    assert statuses(results["left_detail_verify"]) == dict.fromkeys(edges, "holds")

    # attributes at the bottom and in the middle; a key goes and comes back with other values
    results = refreshed(
        p, names, "update {s}.nation set label = 'FR' where id = 1", "update {s}.orders set day = 99 where id = 1",
        "delete from {s}.product where id in (1, 2)", "insert into {s}.product values (1,'PEN'),(2,'pad')",
    )  # fmt: skip
    assert statuses(results["left_detail_verify"]) == {
        "line(order_id)": "touched 1", "line(product_id)": "touched 2", "orders(customer_id)": "holds",
        "customer(nation_id)": "touched 1",
    }  # fmt: skip
    assert {results[n]["way"] for n in names} == {"merge by key", "log by key", "merge by group"}

    # references that lead nowhere: rows stay with NULLs, and the foreign key is told to be violated
    p.model("left_detail_trust", LEFT_DETAIL, meta={"ivm": {"refresh": "strict"}})
    p.run()
    results = refreshed(p, names, "insert into {s}.line values (20,77,1,5),(21,78,88,6)")
    assert statuses(results["left_detail_verify"])["line(order_id)"] == 'violated 2, e.g. {"order_id":78}'
    assert results["left_detail_verify"]["way"] == "append"
    # what was missing comes: no line changed, but one has an order now
    results = refreshed(p, names, "insert into {s}.orders values (77,1,50)")
    assert statuses(results["left_detail_log"])["line(order_id)"].startswith("violated 1")
    assert results["left_detail_verify"]["way"] == "merge by key"
    results = refreshed(p, names, "insert into {s}.orders values (78,99,50)",
                        "insert into {s}.product values (88,'cup')")  # fmt: skip
    assert statuses(results["left_detail_log"])["line(order_id)"] == "holds"
    assert statuses(results["left_detail_log"])["orders(customer_id)"].startswith("violated 1")
    # referenced rows are deleted, in the middle and at the bottom, and one comes again
    results = refreshed(p, names, "delete from {s}.orders where id = 1", "delete from {s}.nation where id = 1")
    assert statuses(results["left_detail_verify"])["line(order_id)"].startswith("violated 2")
    results = refreshed(
        p, names, "insert into {s}.orders values (1,2,7)", "update {s}.line set amount = 500 where id = 1"
    )
    assert statuses(results["left_detail_verify"])["line(order_id)"] == "holds"
    assert {r["strategy"] for r in p.run().values()} == {"none"}


def test_left_joins_where_a_referenced_key_is_doubled(project: Project) -> None:
    """Groups stay exact by the same delta, when the second row comes, changes and goes."""
    p = project
    names = snowflake(p, ("left_groups_verify", {}), ("left_groups_log", {"apply": "log"}))
    p.run()
    results = refreshed(p, names, "insert into {s}.orders values (2,null,30)")
    assert statuses(results["left_groups_verify"])["line(order_id)"].startswith(
        "violated 1, referenced keys of several"
    )
    refreshed(p, names, "update {s}.orders set customer_id = 2 where id = 2 and day = 30",
              "insert into {s}.line values (30,2,1,3)")  # fmt: skip
    refreshed(p, names, "delete from {s}.orders where id = 2")
    refreshed(p, names, "insert into {s}.orders values (2,1,12),(2,1,12)")

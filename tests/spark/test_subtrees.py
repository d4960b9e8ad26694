"""Subtrees kept as auxiliary views on real dbt, Spark and Delta: strategies, rows, crashes, violated keys."""

from __future__ import annotations

import os
from typing import Any

import pytest

from dbt_ivm.bridge import engine
from tests.spark.project import Project
from tests.spark.test_foreign_keys import references, statuses
from tests.spark.test_protocol import Killed, everything_sent, watched

in_full = pytest.mark.skipif(not os.environ.get("DBT_IVM_SPARK_EVERY_MODEL"), reason="minutes: make fuzz-spark")

PK = {"name": "id", "constraints": [{"type": "primary_key"}]}
DETAIL = """
select s.id, s.Amount as Price, c.name, a.city, i.title, d1.year as sold, d2.year as since
from {{ source('raw','sales') }} s
join {{ source('raw','customer') }} c on s.customer_id = c.id
join {{ source('raw','address') }} a on c.address_id = a.id
join {{ source('raw','item') }} i on s.item_id = i.id
join {{ source('raw','day') }} d1 on s.day_id = d1.id
join {{ source('raw','day') }} d2 on c.since_id = d2.id
"""
GROUPS = """
select a.city, count(*) as n, sum(s.amount) as total
from {{ source('raw','sales') }} s
join {{ source('raw','customer') }} c on s.customer_id = c.id
join {{ source('raw','address') }} a on c.address_id = a.id
where a.city <> 'rome' and c.name <> 'nobody'
group by a.city
"""
SUBTREES = {"auxiliary": "subtrees", "refresh": "strict"}


def not_null(column: dict[str, Any]) -> dict[str, Any]:
    return {**column, "constraints": [*column["constraints"], {"type": "not_null"}]}


def snowflake(p: Project, total: bool = True) -> None:
    """sales → customer → address and day, sales → item and day: one table is read by both views."""
    wrap = not_null if total else dict
    p.source("address", "id int, city string", "(1,'oslo'),(2,'rome'),(3,'bonn')", columns=[PK])
    p.source("day", "id int, year int", "(1,2001),(2,2002),(3,2003)", columns=[PK])
    p.source("item", "id int, title string", "(1,'pen'),(2,'ink')", columns=[PK])
    p.source("customer", "id int, address_id int, since_id int, name string",
             "(1,1,1,'ann'),(2,2,1,'bob'),(3,1,2,'cy'),(4,3,2,'dee')",
             columns=[PK, wrap(references("address_id", "address")), wrap(references("since_id", "day"))])  # fmt: skip
    p.source("sales", "id int, customer_id int, item_id int, day_id int, amount int",
             "(1,1,1,1,10),(2,2,1,1,11),(3,3,2,2,12),(4,4,2,3,13),(5,null,1,1,14)",
             columns=[PK, references("customer_id", "customer"), references("item_id", "item"),
                      references("day_id", "day")])  # fmt: skip


def refreshed(p: Project, models: list[str], *changes: str, parts: str = "incremental") -> dict[str, dict[str, Any]]:
    for change in changes:
        p.sql(change.format(s=p.schema))
    results = p.run()
    for name in models:
        assert results[name]["strategy"] == "incremental", (name, results[name]["reason"])
        assert [part["strategy"] for part in results[name]["auxiliary"]] == [parts], results[name]
        p.assert_equal(name)
    return results


def versions(p: Project, *tables: str) -> list[int]:
    return [int(p.sql(f"describe history {p.schema}.{t} limit 1")[0]["version"]) for t in tables]


MIXED = (
    (
        "insert into {s}.customer values (5,3,3,'eve')", "insert into {s}.sales values (6,5,1,3,20),(7,1,2,2,21)",
        "update {s}.address set city = 'OSLO' where id = 1", "delete from {s}.sales where id = 4",
        "update {s}.day set year = 3001 where id = 1",
    ),
    (
        "delete from {s}.sales where customer_id = 2", "delete from {s}.customer where id = 2",
        "delete from {s}.address where id = 2", "insert into {s}.address values (7,'ulm')",
        "update {s}.customer set address_id = 7 where id = 3", "insert into {s}.item values (3,'pad')",
        "insert into {s}.sales values (8,3,3,1,22)",
    ),
    (  # a key is deleted and comes back: as it was, and with other values
        "delete from {s}.customer where id in (1, 3)", "insert into {s}.customer values (1,3,2,'ann'),(3,7,2,'cy')",
        "delete from {s}.address where id = 3", "insert into {s}.address values (3,'BONN')",
    ),
)  # fmt: skip


def test_mixed_changes_of_all_tables(project: Project) -> None:
    p = project
    snowflake(p)
    models = {"detail": DETAIL, "detail_log": DETAIL, "groups_trust": GROUPS, "detail_trust": DETAIL}
    for name, sql in models.items():
        more = {"foreign_keys": "trust"} if "trust" in name else {"apply": "log"} if "log" in name else {}
        p.model(name, sql, meta={"ivm": {**SUBTREES, **more}})
    first = p.run()
    names = list(models)
    for name in names:
        assert [part["name"].split(".")[-1] for part in first[name]["auxiliary"]] == [f"{name}__ivm_aux_1"]
        assert [part["strategy"] for part in first[name]["auxiliary"]] == ["create"]
        p.assert_equal(name)
    edges = {"sales(customer_id)", "sales(item_id)", "sales(day_id)", "customer(address_id)", "customer(since_id)"}
    assert statuses(first["detail"]) == dict.fromkeys(edges, "holds")
    trusted = dict.fromkeys(edges - {"sales(item_id)", "sales(day_id)", "customer(since_id)"}, "trusted")
    assert trusted.items() <= statuses(first["groups_trust"]).items()
    for changes in MIXED:
        results = refreshed(p, names, *changes)
        sources = {name.split(".")[-1] for name in results["detail"]["sources"]}
        assert sources == {"sales", "customer", "address", "item", "day", "detail__ivm_aux_1"}
    # columns and their types as the user wrote them
    described = p.sql(f"describe {p.schema}.detail")
    wanted = p.sql(f"describe query {p.compiled('detail')}")
    assert [tuple(r)[:2] for r in described] == [tuple(r)[:2] for r in wanted]

    # only the facts change: the auxiliary view has nothing to do, and neither its tables nor the others are read again
    results = refreshed(p, names, "insert into {s}.sales values (30,1,1,1,5)", parts="none")
    # nothing changed: nothing is written, by nobody
    tables = [t for name in names for t in (f"{name}__ivm", f"{name}__ivm_aux_1")]
    before = versions(p, *tables)
    results = p.run()
    assert {r["strategy"] for r in results.values()} == {"none"}
    assert versions(p, *tables) == before
    with everything_sent() as seen:
        p.dbt("run", "--select", "detail")
    assert all(sql.startswith(("DESCRIBE", "SELECT")) for sql in seen), seen


def test_operations(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    p, s = project, project.schema
    snowflake(p)
    p.model("detail", DETAIL, meta={"ivm": {**SUBTREES, "apply": "log"}})
    p.run()
    p.sql(f"update {s}.address set city = 'OSLO' where id = 1")
    before = versions(p, "detail__ivm", "detail__ivm_aux_1")
    capsys.readouterr()
    p.dbt("run-operation", "ivm_explain", "--args", "{model: detail}")
    told = capsys.readouterr().out
    assert "strategy: incremental by log by key" in told
    assert f"auxiliary view, refreshed before: {s}.detail__ivm_aux_1" in told
    p.dbt("run-operation", "ivm_dry_run", "--args", "{model: detail}")
    told = capsys.readouterr().out
    assert "strategy: incremental" in told and "OSLO" in told
    p.dbt("run-operation", "ivm_verify")
    assert "not compared, the next refresh is incremental" in capsys.readouterr().out
    assert versions(p, "detail__ivm", "detail__ivm_aux_1") == before, "nothing was written"
    with everything_sent() as seen:
        result = p.run()["detail"]
    assert result["strategy"] == "incremental" and result["statements"] == len(seen)
    assert 0 < result["auxiliary"][0]["statements"] < result["statements"]
    assert result["auxiliary"][0]["rows"]["updated"] == 2
    p.dbt("run-operation", "ivm_verify")
    assert "detail: equal" in capsys.readouterr().out
    p.dbt("run-operation", "ivm_history", "--args", "{model: detail}")
    assert "incremental, by log" in capsys.readouterr().out
    p.dbt("run-operation", "ivm_compact")
    assert f"{s}.detail__ivm_aux_1: 2 dead rows removed" in capsys.readouterr().out
    p.assert_equal("detail")
    refreshed(p, ["detail"], "update {s}.address set city = 'oslo' where id = 1")
    # switched off: rebuilt once; the table stays until somebody drops it
    p.model("detail", DETAIL, meta={"ivm": {"apply": "log"}})
    result = p.run()["detail"]
    assert result["strategy"] == "full" and "definition" in result["reason"] and result["auxiliary"] == []
    assert p.sql(f"show tables in {s} like 'detail__ivm_aux_1'")
    p.assert_equal("detail")
    p.model("detail", DETAIL, meta={"ivm": {"auxiliary": "subtrees"}})
    p.sql(f"update {s}.address set city = 'Oslo' where id = 1")
    result = p.run("--full-refresh")["detail"]
    assert result["strategy"] == "full" and result["auxiliary"][0]["strategy"] == "full"
    p.assert_equal("detail")


def test_killed_between_the_auxiliary_view_and_the_model(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens before the next run: it goes on from what the model reflects."""
    p = project
    snowflake(p)
    p.model("detail", DETAIL, meta={"ivm": SUBTREES})
    p.run()
    for number, changes in enumerate(MIXED):
        for change in changes:
            p.sql(change.format(s=p.schema))

        def dies(position: int, sql: str, when: str, number: int = number) -> None:
            is_own = sql.startswith("MERGE INTO") and "detail__ivm AS" in sql
            if is_own and when == ("before" if number < 2 else "after"):
                if number == 1:
                    raise engine.EngineError("the engine is gone")
                raise Killed

        before = p.rows("detail")
        aux = versions(p, "detail__ivm_aux_1")
        with watched(dies):
            p.run(expect_success=False)
        assert versions(p, "detail__ivm_aux_1") == [aux[0] + 1]
        if number == 2:
            assert {r["strategy"] for r in p.run().values()} == {"none"}
            p.assert_equal("detail")
            continue
        assert p.rows("detail") == before
        if number == 1:
            refreshed(p, ["detail"], parts="none")
        else:  # more happens to tables that both of them read
            refreshed(p, ["detail"], "update {s}.day set year = 99 where id = 2", "delete from {s}.sales where id = 1")


@in_full
def test_rows_without_a_match_below(project: Project) -> None:
    """Customers without an address are no violation of a key; sales that reference them are found when they get one."""
    p = project
    snowflake(p, total=False)
    s = p.schema
    p.sql(f"insert into {s}.customer values (8,null,1,'hal')")
    p.sql(f"insert into {s}.sales values (9,8,1,1,7)")
    for name, more in (("verify", {}), ("trust", {"foreign_keys": "trust"}), ("off", {"foreign_keys": "off"})):
        p.model(name, DETAIL, meta={"ivm": {**SUBTREES, **more}})
    p.model("reports", DETAIL, meta={"ivm": {**SUBTREES, "on_key_violation": "error"}})
    first = p.run()
    assert statuses(first["verify"])["sales(customer_id)"] == "1 rows meet none"
    assert statuses(first["trust"])["sales(customer_id)"] == "not trusted"
    assert first["reports"]["auxiliary"] == [] and statuses(first["reports"])["sales(customer_id)"] == "holds"
    names = ["verify", "trust", "off"]
    results = refreshed(p, names, "update {s}.customer set address_id = 1 where id = 8")
    assert statuses(results["verify"])["sales(customer_id)"] == "holds"
    p.assert_equal("reports")
    refreshed(p, names, "update {s}.customer set address_id = null where id = 1")
    for name in ("reports", "trust"):  # from here on keys are broken
        (p.folder / f"models/{name}.sql").unlink()
    names = ["verify", "off"]
    refreshed(p, names, "insert into {s}.sales values (10,77,1,1,8)", parts="none")
    refreshed(p, names, "insert into {s}.customer values (77,3,1,'ivy')")
    refreshed(p, names, "delete from {s}.address where id = 3")
    refreshed(p, names, "insert into {s}.address values (3,'bonn again')")


def test_a_violated_key_below(project: Project) -> None:
    """The model goes on without the auxiliary view, and says so."""
    p, s = project, project.schema
    snowflake(p)
    p.model("detail", DETAIL, meta={"ivm": {"auxiliary": "subtrees"}})
    p.model("strict", DETAIL, meta={"ivm": SUBTREES})
    p.run()
    p.sql(f"insert into {s}.customer values (3,1,1,'cy too')")
    results = p.run(expect_success=False)
    detail = results["detail"]
    assert detail["strategy"] == "full" and "customer (id)" in detail["reason"] and detail["auxiliary"] == []
    assert "occurs more than once" in detail["reason"]
    p.assert_equal("detail")
    assert "IVM_STRICT" in results["strict"]["message"] and "customer (id)" in results["strict"]["message"]
    p.sql(f"insert into {s}.sales values (40,3,1,1,1)")
    result = p.dbt("run", "--select", "detail")["detail"]
    assert result["strategy"] == "incremental" and result["auxiliary"] == []
    p.assert_equal("detail")
    result = p.dbt("run", "--select", "detail", "--full-refresh")["detail"]
    assert "customer (id)" in result["reason"] and result["auxiliary"] == []
    p.assert_equal("detail")
    p.sql(f"delete from {s}.customer where name = 'cy too'")
    results = p.run("--full-refresh")
    assert [len(results[m]["auxiliary"]) for m in ("detail", "strict")] == [1, 1]
    refreshed(p, ["detail", "strict"], *MIXED[0])

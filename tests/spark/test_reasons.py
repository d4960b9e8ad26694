"""Full with the reason, never a wrong delta: one model per cause, each on sources of its own, two runs for all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.project import Project

KEY = [{"name": "id", "constraints": [{"type": "primary_key"}]}]
CAUSES = (
    "definition", "recreated", "feed_off", "gap", "dropped_column", "type_change", "written_to", "bad_state",
    "unused_column", "optimized", "doubled_key", "replaced", "late_feed",
)  # fmt: skip


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(Path(tmp_path_factory.mktemp("reasons")))
    for cause in CAUSES:
        project.source(f"raw_{cause}", "id bigint, v int, extra string", "(1,10,'x'),(2,20,'y')", feed=cause not in ("feed_off", "late_feed"),
                       columns=KEY if cause == "doubled_key" else [])  # fmt: skip
        project.model(cause, f"select id, v from {{{{ source('raw','raw_{cause}') }}}}")
    yield project


@pytest.fixture(scope="module")
def results(shop: Project) -> dict[str, dict[str, Any]]:
    """Build all, break each in its own way, run again."""
    first = shop.run()
    assert {r["strategy"] for r in first.values()} == {"create"}
    s = shop.schema
    shop.model("definition", "select id, v + 1 as v from {{ source('raw','raw_definition') }}")
    shop.sql(f"drop table {s}.raw_recreated")
    shop.sql(
        f"create table {s}.raw_recreated (id bigint, v int, extra string) using delta tblproperties (delta.enableChangeDataFeed = true)"
    )
    shop.sql(f"insert into {s}.raw_recreated values (7,70,'z')")
    shop.sql(f"insert into {s}.raw_feed_off values (3,30,'z')")
    shop.sql(f"alter table {s}.raw_gap set tblproperties (delta.enableChangeDataFeed = false)")
    shop.sql(f"insert into {s}.raw_gap values (3,30,'z')")
    shop.sql(f"update {s}.raw_gap set v = 0 where id = 1")
    shop.sql(f"alter table {s}.raw_gap set tblproperties (delta.enableChangeDataFeed = true)")
    shop.sql(
        f"create or replace table {s}.raw_dropped_column using delta tblproperties (delta.enableChangeDataFeed = true) as select id, 5 as w from {s}.raw_dropped_column"
    )
    shop.model("dropped_column", "select id, w as v from {{ source('raw','raw_dropped_column') }}")
    shop.sql(
        f"create or replace table {s}.raw_type_change using delta tblproperties (delta.enableChangeDataFeed = true) as select id, cast(v as bigint) as v, extra from {s}.raw_type_change"
    )
    shop.sql(f"delete from {s}.written_to__ivm where id = 1")
    shop.sql(f"insert into {s}.raw_written_to values (3,30,'z')")
    shop.sql(f"update {s}.bad_state__ivm set __ivm_state = 'not json' where __ivm_part = 1")
    shop.sql(f"alter table {s}.raw_unused_column add columns (another int)")
    shop.sql(f"insert into {s}.raw_unused_column values (3,30,'z',1)")
    shop.sql(f"optimize {s}.optimized__ivm")
    shop.sql(f"optimize {s}.raw_optimized")
    shop.sql(f"insert into {s}.raw_doubled_key values (2,99,'again')")
    shop.sql(
        f"create or replace table {s}.raw_replaced using delta tblproperties (delta.enableChangeDataFeed = true) as select 1L as id, 10 as v, 'x' as extra union all select 9L, 90, 'n'"
    )
    shop.sql(f"alter table {s}.raw_late_feed set tblproperties (delta.enableChangeDataFeed = true)")
    return shop.run()


@pytest.mark.parametrize(
    ("cause", "strategy", "reason"),
    [
        ("definition", "full", "definition"),
        ("recreated", "full", "dropped and created again"),
        ("feed_off", "full", "ALTER TABLE {s}.raw_feed_off SET TBLPROPERTIES (delta.enableChangeDataFeed = true)"),
        ("gap", "full", "change data feed was off for some versions"),
        ("dropped_column", "full", "definition"),
        ("type_change", "full", "columns it uses changed"),
        ("written_to", "full", "somebody else wrote into the storage table"),
        ("bad_state", "full", "state row cannot be read"),
        ("unused_column", "incremental", ""),
        ("optimized", "incremental", ""),
        ("doubled_key", "full", "occurs more than once"),
        ("replaced", "incremental", ""),
        ("late_feed", "incremental", ""),
    ],
)  # fmt: skip
def test_reason(shop: Project, results: dict[str, dict[str, Any]], cause: str, strategy: str, reason: str) -> None:
    result = results[cause]
    assert result["strategy"] == strategy, result["message"]
    assert reason.format(s=shop.schema) in result["reason"]
    if strategy == "full":
        assert result["reason"] in result["message"], "the status line carries the reason"
    shop.assert_equal(cause)


def test_true_difference_of_a_replaced_source(results: dict[str, dict[str, Any]]) -> None:
    assert results["replaced"]["rows"] == {"inserted": 1, "updated": 0, "deleted": 1}
    assert results["optimized"]["way"] == "state only"


def test_all_go_on_incrementally(shop: Project, results: dict[str, dict[str, Any]]) -> None:
    """After the full refresh with a reason the next one is incremental again, the distrusted key included."""
    s = shop.schema
    for cause in ("recreated", "gap", "written_to", "doubled_key"):
        shop.sql(f"insert into {s}.raw_{cause} values (5,50,'n')")
        shop.sql(f"delete from {s}.raw_{cause} where id = 2")
    again = shop.run("--select", "recreated", "gap", "written_to", "doubled_key")
    assert {r["strategy"] for r in again.values()} == {"incremental"}, {n: r["message"] for n, r in again.items()}
    for cause in again:
        shop.assert_equal(cause)


def test_policies(shop: Project, results: dict[str, dict[str, Any]]) -> None:
    """strict: error and the old result; on_key_violation error: nothing written; full: as asked; refusals named."""
    s = shop.schema
    shop.source("keyed", "id bigint, v int", "(1,1)", columns=KEY)
    shop.source("plain", "id bigint, v int", "(1,1)")
    shop.model("strict_model", "select id, v from {{ source('raw','plain') }}", meta={"ivm": {"refresh": "strict"}})
    shop.model("strict_refused", "select id, sum(v) over () as n\nfrom {{ source('raw','plain') }}",
               meta={"ivm": {"refresh": "strict"}})  # fmt: skip
    shop.model("refused", "select id, sum(v) over () as n from {{ source('raw','plain') }}")
    shop.model(
        "key_error", "select id, v from {{ source('raw','keyed') }}", meta={"ivm": {"on_key_violation": "error"}}
    )
    shop.model("always_full", "select id, v from {{ source('raw','plain') }}", meta={"ivm": {"refresh": "full"}})
    shop.model("bad_option", "select id, v from {{ source('raw','plain') }}", meta={"ivm": {"refresh": "sometimes"}})
    names = ["strict_model", "strict_refused", "refused", "key_error", "always_full", "bad_option"]
    first = shop.run("--select", *names, expect_success=False)
    assert first["strict_model"]["strategy"] == "create" and first["refused"]["strategy"] == "create"
    assert (
        "window functions without PARTITION BY: every row may depend on every other"
        in first["strict_refused"]["message"]
    )
    assert "line 2" in first["strict_refused"]["message"] or "line 1" in first["strict_refused"]["message"]
    assert "sometimes" in first["bad_option"]["message"] and "strict" in first["bad_option"]["message"]
    assert not shop.sql(f"show tables in {s} like 'strict_refused*'")

    shop.sql(f"insert into {s}.keyed values (1,2)")
    shop.sql(f"drop table {s}.plain")
    shop.sql(f"create table {s}.plain using delta as select 2L as id, 2 as v")
    second = shop.run("--select", "strict_model", "refused", "key_error", "always_full", expect_success=False)
    assert "IVM_STRICT" in second["strict_model"]["message"] and "created again" in second["strict_model"]["message"]
    assert shop.rows("strict_model") == [(1, 1)], "the old result stays"
    assert "IVM_KEY_VIOLATION" in second["key_error"]["message"] and '{"id":1}' in second["key_error"]["message"]
    assert shop.rows("key_error") == [(1, 1)]
    assert second["refused"]["strategy"] == "full" and "window functions" in second["refused"]["message"]
    assert second["always_full"]["strategy"] == "full"
    shop.assert_equal("refused")
    shop.assert_equal("always_full")
    third = shop.run("--select", "refused", "strict_model", "--full-refresh")
    assert {n: r["strategy"] for n, r in third.items()} == {"refused": "full", "strict_model": "full"}
    assert shop.run("--select", "refused")["refused"]["strategy"] == "none"


def test_vacuumed_history(shop: Project) -> None:
    """The feed of old versions needs files that a VACUUM took away: found when it is read, then full with the reason."""
    s = shop.schema
    shop.source("raw_vacuumed", "id bigint, v int", "(1,1),(2,2)")
    shop.model("vacuumed", "select id, v from {{ source('raw','raw_vacuumed') }}")
    shop.run("--select", "vacuumed")
    shop.sql(f"update {s}.raw_vacuumed set v = 9 where id = 1")
    shop.sql(f"delete from {s}.raw_vacuumed where id = 2")
    shop.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    shop.sql(f"vacuum {s}.raw_vacuumed retain 0 hours")
    result = shop.run("--select", "vacuumed")["vacuumed"]
    assert result["strategy"] == "full" and "vacuumed" in result["reason"]
    shop.assert_equal("vacuumed")


def test_a_model_that_reads_itself_is_an_error(shop: Project) -> None:
    """A source under the model's own name would be replaced by the model: refuse before anything is touched."""
    shop.source("itself", "id bigint", "(1)")
    shop.model("itself", "select id from {{ source('raw','itself') }}")
    failed = shop.run("--select", "itself", expect_success=False)["itself"]
    assert "IVM_SELF_REFERENCE" in failed["message"]
    assert shop.rows("itself") == [(1,)]
    (shop.folder / "models" / "itself.sql").unlink()


def test_dropped_source_is_a_clear_error(shop: Project, results: dict[str, dict[str, Any]]) -> None:
    before = shop.rows("recreated")
    shop.sql(f"drop table {shop.schema}.raw_recreated")
    result = shop.run("--select", "recreated", expect_success=False)["recreated"]
    assert "IVM_UNKNOWN_RELATION" in result["message"] and f"{shop.schema}.raw_recreated" in result["message"]
    assert shop.rows("recreated") == before

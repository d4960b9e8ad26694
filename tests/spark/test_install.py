"""The ways the package gets into a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.project import Project

ROOT = Path(__file__).parents[2]


def test_package_entry_wins(project: Project) -> None:
    """packages.yml with local: installs the same macros; both ways together do not clash."""
    p = project
    p.source("orders", "id bigint", "(1)")
    p.model("m", "select id from {{ source('raw','orders') }}")
    p.write("packages.yml", {"packages": [{"local": str(ROOT)}]})
    p.dbt("deps")
    assert p.run()["m"]["strategy"] == "create"
    p.sql(f"insert into {p.schema}.orders values (2)")
    assert p.run()["m"]["strategy"] == "incremental"
    p.assert_equal("m")


def test_macros_without_python_say_what_is_missing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from dbt.context import base

    p = project
    p.source("orders", "id bigint", "(1)")
    p.model("m", "select id from {{ source('raw','orders') }}")
    p.dbt("parse")
    with_ivm = base.get_context_modules

    def without() -> dict[str, Any]:
        return {k: v for k, v in with_ivm().items() if k != "ivm"}

    without.is_dbt_ivm = True  # type: ignore[attr-defined]
    monkeypatch.setattr(base, "get_context_modules", without)
    failed = p.run(expect_success=False)["m"]
    assert "pip install dbt-ivm" in failed["message"]


def test_turning_the_feed_on(project: Project) -> None:
    """The first run warns with the exact statement; the operation runs it for every table, and only when asked."""
    p, s = project, project.schema
    p.source("orders", "id bigint", "(1)", feed=False)
    p.sql(f"create view {s}.orders_view as select id from {s}.orders")
    p.source("orders_view")
    p.model("m", "select id from {{ source('raw','orders_view') }}")
    p.run()
    p.dbt("run-operation", "ivm_enable_change_feed", "--args", "{dry_run: true}")
    assert "delta.enableChangeDataFeed" not in p.sql(f"describe detail {s}.orders")[0].properties
    p.dbt("run-operation", "ivm_enable_change_feed")
    assert p.sql(f"describe detail {s}.orders")[0].properties["delta.enableChangeDataFeed"] == "true"
    p.sql(f"insert into {s}.orders values (2)")
    assert p.run()["m"]["strategy"] == "incremental"
    p.assert_equal("m")
    p.dbt("run-operation", "ivm_explain", "--args", "{model: m}")
    p.dbt("run-operation", "ivm_dry_run", "--args", "{model: m}")
    p.dbt("run-operation", "ivm_explain", "--args", "{model: nobody}", expect_success=False)

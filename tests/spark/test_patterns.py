"""Models as people write them: integration_tests/models/patterns on real Delta, through three mixed change sets.

After each, every model equals its query as a bag and was refreshed as planned: incrementally, or not at all when nothing
that it reads changed, or in full where tests/test_patterns.py says so.

DBT_IVM_SPARK_EVERY_MODEL=1 pytest tests/spark/test_patterns.py       the second and third change set, too
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.patterns import FOLDER, PROJECT
from tests.spark.project import Project
from tests.test_patterns import FULL, patterns

#: The second change set touches these tables, the third all others.
FACTS = frozenset({"crm_blocklist", "shop_orders", "shop_order_lines", "shop_payments", "web_events"})

Results = dict[str, dict[str, Any]]

in_full = pytest.mark.skipif(not os.environ.get("DBT_IVM_SPARK_EVERY_MODEL"), reason="minutes: make fuzz-spark")


class Integration(Project):
    """The project of integration_tests on the shared session, in a schema of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("target", "logs"), dirs_exist_ok=True)
        output = {"type": "spark", "method": "session", "host": "NA", "schema": self.schema, "threads": 2}
        self.write("profiles.yml", {"ivm_integration": {"target": "dev", "outputs": {"dev": output}}})

    def round(self, number: int) -> Results:
        """Change the sources, then run the patterns with the views they read."""
        results = self.run("--select", f"+path:models/{FOLDER}", "--vars", f"{{patterns_round: {number}}}")
        return {n: results[n] for n in patterns()}

    def compiled(self, name: str) -> str:
        file = self.folder / "target" / "compiled" / "ivm_integration" / "models" / FOLDER / f"{name}.sql"
        return file.read_text(encoding="utf-8")

    def tables_below(self) -> dict[str, set[str]]:
        """Per model the source tables that it reads, through views and models."""
        manifest = json.loads((self.folder / "target" / "manifest.json").read_text(encoding="utf-8"))
        sources = {i: {s["identifier"]} for i, s in manifest["sources"].items()}

        def below(node: str) -> set[str]:
            if node not in sources:
                sources[node] = set().union(*(below(n) for n in manifest["nodes"][node]["depends_on"]["nodes"]))
            return sources[node]

        return {name: below(f"model.ivm_integration.{name}") for name in patterns()}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Integration]:
    yield Integration(Path(tmp_path_factory.mktemp("patterns")))


def check(project: Integration, results: Results, touched: set[str]) -> None:
    assert {n: r["strategy"] for n, r in results.items()} == {
        n: ("full" if n in FULL else "incremental") if n in touched else "none" for n in patterns()
    }, {n: r["reason"] for n, r in results.items() if r["reason"]}
    for name in touched - set(FULL):
        assert results[name]["way"] not in ("", "rewrite"), name
        assert any(s["from"] != s["to"] for s in results[name]["sources"].values()), name
    for name in sorted(touched):
        project.assert_equal(name)


def test_build(project: Integration) -> None:
    results = project.round(0)
    assert {n: r["strategy"] for n, r in results.items()} == dict.fromkeys(patterns(), "create")
    assert [n for n, r in results.items() if not r["total_rows"]] == [], "a pattern without rows shows nothing"


def test_every_source_changed(project: Integration) -> None:
    results = project.round(1)
    check(project, results, set(patterns()))
    assert {n: results[n]["way"] for n, p in patterns().items() if p.is_incremental} == {
        n: p.plan.way for n, p in patterns().items() if p.is_incremental
    }
    assert [n for n, r in results.items() if n not in FULL and not any(r["rows"].values())] == []


@in_full
def test_facts_changed(project: Integration) -> None:
    check(project, project.round(2), {n for n, tables in project.tables_below().items() if tables & FACTS})


@in_full
def test_everything_else_changed(project: Integration) -> None:
    check(project, project.round(3), {n for n, tables in project.tables_below().items() if tables - FACTS})


def test_the_packages_own_test_agrees(project: Integration) -> None:
    results = project.dbt("test", "--select", "customers", "sessions", "revenue_by_tag")
    tests = {n: r["status"] for n, r in results.items() if r["unique_id"].startswith("test.")}  # hooks are results too
    assert list(tests.values()) == ["pass"] * 3, tests

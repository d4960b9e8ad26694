"""The plugin that dbt imports in every command: cheap, idempotent, and silent for other adapters."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_ivm.bridge import plugin


def test_import_is_trivial() -> None:
    """Nothing heavy is loaded, and the import stays under 5 ms (best of several, each in a fresh interpreter)."""
    code = (
        "import sys, time, typing; before = set(sys.modules); start = time.perf_counter(); import dbt_ivm;"
        " print(1000 * (time.perf_counter() - start));"
        " print(sorted(m for m in set(sys.modules) - before if not m.startswith('dbt_ivm')))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(5)
    ]
    assert min(float(r.splitlines()[0]) for r in runs) < 5
    assert "sqlglot" not in runs[0]


def test_no_attribute_is_invented() -> None:
    import dbt_ivm

    with pytest.raises(AttributeError):
        dbt_ivm.nothing_of_that_name  # noqa: B018


def test_module_is_added_once() -> None:
    from dbt.context import base

    plugin.DbtIvmPlugin("a_project")
    first = base.get_context_modules
    plugin.DbtIvmPlugin("a_project")
    assert base.get_context_modules is first
    modules = first()
    assert {"pytz", "datetime", "re", "itertools", "ivm"} <= set(modules)
    assert {"refresh", "explain", "dry_run"} <= set(modules["ivm"])


@pytest.mark.parametrize(
    ("adapter", "project", "present", "expected"),
    [
        ("spark", "shop", [], True),
        ("postgres", "shop", [], False),
        ("spark", "dbt_ivm", [], False),
        ("spark", "shop", ["dbt_ivm"], False),
    ],
)
def test_macros_are_added_for_spark_only(
    monkeypatch: pytest.MonkeyPatch, adapter: str, project: str, present: list[str], expected: bool
) -> None:
    """An entry in packages.yml wins; other adapters and the package's own project are left alone."""
    from dbt.config.runtime import RuntimeConfig

    def original(self: Any, base_only: bool = False) -> Any:
        self.dependencies = {name: "from packages.yml" for name in present}
        return self.dependencies

    monkeypatch.setattr(RuntimeConfig, "load_dependencies", original)
    plugin._add_macros()
    loaded: list[str] = []

    def new_project(path: str) -> Any:
        loaded.append(path)
        return SimpleNamespace(project_name="dbt_ivm")

    config = SimpleNamespace(
        dependencies=None, project_name=project, credentials=SimpleNamespace(type=adapter), new_project=new_project
    )
    dependencies = RuntimeConfig.load_dependencies(config)
    assert bool(loaded) is expected
    assert ("dbt_ivm" in dependencies) is (expected or bool(present))
    if present:
        assert dependencies["dbt_ivm"] == "from packages.yml"


def test_base_only_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from dbt.config.runtime import RuntimeConfig

    monkeypatch.setattr(RuntimeConfig, "load_dependencies", lambda self, base_only=False: {"internal": 1})
    plugin._add_macros()
    config = SimpleNamespace(dependencies=None, project_name="shop", credentials=SimpleNamespace(type="spark"))
    assert RuntimeConfig.load_dependencies(config, base_only=True) == {"internal": 1}

"""dbt finds this plugin in every command: it adds ``modules.ivm`` for macros, and the macros themselves.

Both are additions around dbt functions, made once per process and only effective for Spark and adapters built on it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbt.plugins.manager import dbtPlugin

PACKAGE = "dbt_ivm"


class DbtIvmPlugin(dbtPlugin):
    def initialize(self) -> None:
        _add_module()
        _add_macros()


def package_path() -> Path | None:
    """The dbt package: inside a wheel, or the repository root of an editable install."""
    here = Path(__file__).resolve().parent.parent
    for candidate in (here / "dbt_package", here.parent):
        if (candidate / "dbt_project.yml").exists() and (candidate / "macros").is_dir():
            return candidate
    return None


def _add_module() -> None:
    from dbt.context import base

    original = base.get_context_modules
    if getattr(original, "is_dbt_ivm", False):
        return

    @functools.wraps(original)
    def with_ivm() -> dict[str, Any]:
        from dbt_ivm.bridge import macro_api

        return {**original(), "ivm": macro_api.functions()}

    with_ivm.is_dbt_ivm = True  # type: ignore[attr-defined]
    base.get_context_modules = with_ivm


def _add_macros() -> None:
    from dbt.config.runtime import RuntimeConfig

    original = RuntimeConfig.load_dependencies
    if getattr(original, "is_dbt_ivm", False):
        return

    @functools.wraps(original)
    def with_package(self: Any, base_only: bool = False) -> Mapping[str, Any]:
        fresh = self.dependencies is None
        dependencies = original(self, base_only=base_only)
        path = package_path()
        wanted = fresh and not base_only and path is not None and PACKAGE not in dependencies
        if wanted and self.project_name != PACKAGE and _is_spark(self.credentials.type):
            project = self.new_project(str(path))
            self.dependencies = {**dependencies, project.project_name: project}
        result: Mapping[str, Any] = self.dependencies or dependencies
        return result

    with_package.is_dbt_ivm = True  # type: ignore[attr-defined]
    RuntimeConfig.load_dependencies = with_package


def _is_spark(adapter_type: str) -> bool:
    """Spark itself, or an adapter that builds on it (Databricks does)."""
    if adapter_type == "spark":
        return True
    from dbt.adapters.factory import FACTORY

    try:
        return "spark" in FACTORY.get_adapter_plugin_names(adapter_type)
    except Exception:  # an adapter that is not loaded cannot be Spark's
        return False

"""dbt-ivm: dbt models on Spark that refresh by exactly what changed.

Every dbt command imports this module, so it must stay trivial: names load on first use.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_LAZY = {
    "plan_view": "dbt_ivm.api",
    "table": "dbt_ivm.api",
    "RefreshPlan": "dbt_ivm.refresh.plan",
}


def __getattr__(name: str) -> Any:
    if name == "plugins":  # dbt looks for this name to find plugins
        from dbt_ivm.bridge.plugin import DbtIvmPlugin

        return [DbtIvmPlugin]
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'dbt_ivm' has no attribute {name!r}")

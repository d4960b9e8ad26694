"""dbt in this process, and what its run_results say about each model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from examples.shop.demo.place import PROJECT, RUN


class DbtFailed(Exception):
    """The message lists what failed."""


@dataclass(frozen=True)
class ModelRun:
    """One incremental_ivm model in one `dbt run`."""

    name: str
    strategy: str
    message: str
    seconds: float
    total: int | None
    changed: int
    foreign_keys: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class TestRun:
    model: str
    passed: bool
    message: str
    seconds: float


def dbt_run(*arguments: str, progress: Callable[[str], None]) -> list[ModelRun]:
    """`dbt run`; the models in the order they ran, without the staging views."""
    results = _results(["run", *arguments], progress)
    return [_model_run(r) for r in results if "ivm" in r["adapter_response"]]


def dbt_test(progress: Callable[[str], None]) -> list[TestRun]:
    results = _results(["test"], progress, may_fail=True)
    return [
        TestRun(_tested_model(r["unique_id"]), r["status"] == "pass", r["message"] or "", r["execution_time"])
        for r in results
    ]


def dbt_explain(model: str) -> str:
    """What `dbt run-operation ivm_explain` prints."""
    printed: list[str] = []

    def listen(event: Any) -> None:
        if event.info.name in ("PrintEvent", "JinjaLogInfo"):
            printed.append(event.data.msg)

    if not _invoke(["run-operation", "ivm_explain", "--args", json.dumps({"model": model})], listen):
        raise DbtFailed("dbt run-operation ivm_explain failed")
    return "\n".join(printed)


def _model_run(result: dict[str, Any]) -> ModelRun:
    ivm = result["adapter_response"]["ivm"]
    return ModelRun(
        name=_name(result["unique_id"]),
        strategy=ivm["strategy"],
        message=result["message"],
        seconds=result["execution_time"],
        total=ivm["total_rows"],
        changed=sum(count or 0 for count in ivm["rows"].values()),
        foreign_keys=tuple((e["edge"], e["status"]) for e in ivm["foreign_keys"] if e["status"] != "not used"),
    )


def _results(command: list[str], progress: Callable[[str], None], may_fail: bool = False) -> list[dict[str, Any]]:
    file = RUN / "target" / "run_results.json"
    file.unlink(missing_ok=True)

    def listen(event: Any) -> None:
        if event.info.name == "LogStartLine":
            progress(f"{event.data.index} of {event.data.total}  {event.data.node_info.node_name}")

    success = _invoke(command, listen)
    results: list[dict[str, Any]] = json.loads(file.read_text())["results"] if file.exists() else []
    failed = [f"{_name(r['unique_id'])}: {r['message']}" for r in results if r["status"] in ("error", "skipped")]
    if failed or not (success or may_fail):
        raise DbtFailed(f"dbt {command[0]} failed\n" + "\n".join(failed))
    return results


def _invoke(command: Sequence[str], listen: Callable[[Any], None]) -> bool:
    from dbt.cli.main import dbtRunner

    where = ["--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT)]
    outcome = dbtRunner(callbacks=[listen]).invoke(["--quiet", *command, *where])
    if outcome.exception is not None:
        raise DbtFailed(f"dbt {command[0]}: {outcome.exception}")
    return bool(outcome.success)


def _name(unique_id: str) -> str:
    return unique_id.split(".")[2]


def _tested_model(unique_id: str) -> str:
    """test.shop.dbt_ivm_equals_recompute_order_lines_.1a2b → order_lines"""
    return _name(unique_id).removeprefix("dbt_ivm_equals_recompute_").rstrip("_")

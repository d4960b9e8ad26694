"""The report of a run, and the command line's own errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbt_ivm.bridge.outcome import Outcome
from dbt_ivm.cli import main, report_lines
from dbt_ivm.refresh.foreign_keys import EdgeStatus
from dbt_ivm.refresh.state import RowCounts


def result(name: str, outcome: Outcome, seconds: float, status: str = "success") -> dict[str, Any]:
    return {
        "unique_id": f"model.shop.{name}",
        "status": status,
        "message": outcome.status,
        "execution_time": seconds,
        "adapter_response": {"ivm": outcome.response},
    }


BROKEN = EdgeStatus("orders.customer -> customer.id", "violated 2, e.g. 7", 1)
RUN = [
    result("orders", Outcome("incremental", way="merge by key", rows=RowCounts(12, 3, 1), total=90, statements=7), 2.1),
    result("regions", Outcome("full", "its change feed is off", total=40, foreign_keys=(BROKEN,)), 5.04),
]


def test_report_of_a_run() -> None:
    assert report_lines(RUN) == [
        "orders       2.1 s  INCREMENTAL +12 ~3 -1 of 90",
        "         merge by key, 7 statements",
        "regions      5.0 s  FULL 40 rows because its change feed is off",
        "         foreign key orders.customer -> customer.id: violated 2, e.g. 7",
        "2 models: 1 incremental, 1 full; 16 rows changed; 7.1 s",
    ]


def test_report_fails_when_a_model_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = {
        "unique_id": "model.shop.bad",
        "status": "error",
        "message": "[IVM_STRICT] no",
        "execution_time": 0.1,
        "adapter_response": {},
    }
    (tmp_path / "run_results.json").write_text(json.dumps({"results": [*RUN, failed]}))
    assert main(["report", "--target-path", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "FAILED bad: [IVM_STRICT] no"
    (tmp_path / "run_results.json").write_text(json.dumps({"results": []}))
    assert main(["report", "--target-path", str(tmp_path)]) == 0


def test_unknown_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explain"])
    assert "model" in capsys.readouterr().err

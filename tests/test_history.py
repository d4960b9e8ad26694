"""Lines of a model's history, from the commits of its storage table."""

from __future__ import annotations

from typing import Any

from dbt_ivm.bridge.history import history_lines
from dbt_ivm.cdc.commits import read_commits
from dbt_ivm.refresh.state import METADATA_MARK, RowCounts, State


def commit(version: int, operation: str, metrics: dict[str, int], **more: Any) -> dict[str, Any]:
    shown = {k: str(v) for k, v in metrics.items()}
    return {"version": version, "timestamp": "2024-01-01", "operation": operation, "operationMetrics": shown, **more}


def test_every_kind_of_commit() -> None:
    logged = METADATA_MARK + State(4, "f", {}, mode="log", counts=RowCounts(1, 2, 3)).to_json()
    merged = {"numTargetRowsInserted": 1, "numTargetRowsUpdated": 3, "numTargetRowsDeleted": 0}
    overwrite = {"operationParameters": {"mode": "Overwrite"}, "userMetadata": logged}
    rows = [
        commit(6, "DELETE", {"numDeletedRows": 2}),
        commit(5, "WRITE", {"numOutputRows": 8}, **overwrite),
        commit(4, "WRITE", {"numOutputRows": 7}, userMetadata=logged),
        commit(3, "OPTIMIZE", {}),
        commit(2, "UPDATE", {"numUpdatedRows": 1}),
        commit(1, "MERGE", merged),
        commit(0, "CREATE TABLE AS SELECT", {"numOutputRows": 11}),
    ]
    states = {0: State(1, "f", {}, reason="asked for"), 1: State(2, "f", {}, reason="asked for")}
    lines = history_lines(read_commits(rows), {0: "2024-01-01"}, states)
    assert [(line["version"], line["what"], line["rows"]) for line in lines] == [
        (6, "written by somebody else: DELETE", ""),
        (5, "compaction", ""),
        (4, "incremental, by log", "+1 ~2 -3"),
        (3, "maintenance: OPTIMIZE", ""),
        (2, "state only", ""),
        (1, "incremental, by merge", "+1 ~2 -0"),
        (0, "built in full", "10 rows"),
    ]
    assert [line["reason"] for line in lines[-2:]] == ["", "asked for"], "a merge rebuilds nothing"
    assert lines[-1]["at"] == "2024-01-01" and lines[-1]["refresh"] == 1 and lines[0]["refresh"] is None


def test_an_unknown_number_stays_unknown() -> None:
    (line,) = history_lines(read_commits([commit(1, "MERGE", {})]), {}, {})
    assert line["rows"] == "+? ~? -?"

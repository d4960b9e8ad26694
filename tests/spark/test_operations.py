"""What a user asks about models: history, verification, the command line over both."""

from __future__ import annotations

import pytest

from dbt_ivm.cli import main
from tests.spark.project import Project


def run(p: Project, capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main([*command, "--project-dir", str(p.folder), "--profiles-dir", str(p.folder)])
    return code, capsys.readouterr().out


def test_history_and_verification(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    p, s = project, project.schema
    key = [{"name": "id", "constraints": [{"type": "primary_key"}]}]
    p.source("orders", "id bigint, region string, amount int", "(1,'n',10),(2,'s',5)", columns=key)
    p.model("by_region", "select region, sum(amount) as total from {{ source('raw','orders') }} group by region")
    p.model("kept", "select id, amount from {{ source('raw','orders') }}", meta={"ivm": {"apply": "log"}})
    assert run(p, capsys, "history", "kept") == (0, "kept: not built yet\n")
    assert run(p, capsys, "verify", "kept")[1] == "kept: not compared, not built yet\n"
    p.run()
    p.sql(f"insert into {s}.orders values (3,'s',7)")
    assert "kept: not compared, the next refresh is incremental" in run(p, capsys, "verify", "kept")[1]
    assert p.run()["by_region"]["strategy"] == "incremental"
    p.sql(f"update {s}.orders set region = 'w' where id = 1")
    p.run()
    assert run(p, capsys, "verify") == (0, "by_region: equal\nkept: equal\n")

    code, out = run(p, capsys, "history", "by_region")
    merged, earlier, built = out.splitlines()
    assert code == 0 and "incremental, by merge" in merged and "+1 ~0 -1" in merged
    assert "incremental, by merge" in earlier and "+0 ~1 -0" in earlier
    assert "built in full" in built and built.endswith("2 rows")
    p.run("--full-refresh", "--select", "by_region")
    code, out = run(p, capsys, "history", "by_region", "--limit", "1")
    (again,) = out.splitlines()
    assert "built in full" in again and "full refresh was asked for" in again, "the reason of a rebuild is kept"
    assert "incremental, by log" in run(p, capsys, "history", "kept")[1]

    p.sql(f"update {s}.by_region__ivm set __ivm_sum_1 = 99 where region = 's'")
    code, out = run(p, capsys, "verify", "by_region")
    assert "not compared" in out, "somebody wrote into the storage table, so the next refresh is full"
    p.run("--select", "by_region")
    assert run(p, capsys, "verify", "by_region") == (0, "by_region: equal\n")


def test_verification_fails_on_a_wrong_row(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    p, s = project, project.schema
    p.source("orders", "id bigint, amount int", "(1,10),(2,5)")
    p.model("kept", "select id, amount from {{ source('raw','orders') }}")
    p.run()
    p.sql(f"create or replace view {s}.kept as select id, amount from {s}.kept__ivm where __ivm_part = 0 and id = 1")
    code, out = run(p, capsys, "verify")
    assert code == 1 and "kept: DIFFERENT" in out


def test_report_and_explain(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    p = project
    p.source("orders", "id bigint", "(1),(2)")
    p.model("kept", "select id from {{ source('raw','orders') }}")
    assert main(["report", "--target-path", str(p.folder / "target")]) == 1
    assert "run dbt first" in capsys.readouterr().err
    p.run()
    capsys.readouterr()
    assert main(["report", "--target-path", str(p.folder / "target")]) == 0
    line, _, total = capsys.readouterr().out.splitlines()
    assert line.startswith("kept ") and line.endswith("CREATE 2 rows") and total.startswith("1 models: 1 create;")
    code, out = run(p, capsys, "explain", "kept")
    assert code == 0 and out.startswith("strategy: none"), out
    assert run(p, capsys, "dry-run", "kept")[1].startswith("strategy: none")
    assert run(p, capsys, "explain", "nobody")[0] == 1

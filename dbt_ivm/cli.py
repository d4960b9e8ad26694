"""The command line ``dbt-ivm``: dbt-ivm's operations without the YAML of ``dbt run-operation``, and a report of a run.

    dbt-ivm explain m              what the next refresh would do          dbt-ivm history m     what refreshes did
    dbt-ivm dry-run m              the rows it would apply                 dbt-ivm verify [m]    is the result right?
    dbt-ivm compact [m]            remove dead rows                        dbt-ivm report        the last dbt run
    dbt-ivm enable-change-feed     for every source that lacks it

--project-dir, --profiles-dir, --profile, --target and --vars are dbt's own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: Command, operation, whether a model is needed (None: takes none), options of the operation, help.
OPERATIONS: tuple[tuple[str, str, bool | None, tuple[str, ...], str], ...] = (
    ("explain", "ivm_explain", True, (), "what the next refresh would do, and how"),
    ("dry-run", "ivm_dry_run", True, ("limit",), "the rows the next refresh would apply"),
    ("history", "ivm_history", True, ("limit",), "what refreshes did, newest first"),
    ("verify", "ivm_verify", False, ("limit",), "compare models with their queries"),
    ("compact", "ivm_compact", False, (), "remove dead rows of tables kept by log"),
    ("enable-change-feed", "ivm_enable_change_feed", None, ("dry_run",), "turn Delta's change data feed on"),
)


#: Options that go on to dbt.
FOR_DBT = ("project_dir", "profiles_dir", "profile", "target", "vars")


def main(arguments: Sequence[str] | None = None) -> int:
    given = vars(_parser().parse_args(arguments))
    name = given.pop("command")
    if name == "report":
        return report(Path(given["target_path"]) / "run_results.json")
    from dbt.cli.main import dbtRunner

    operation = next(o for c, o, *_ in OPERATIONS if c == name)
    given = {k: v for k, v in given.items() if v is not None}
    for_dbt = [part for k in FOR_DBT if k in given for part in (f"--{k.replace('_', '-')}", str(given.pop(k)))]
    outcome = dbtRunner().invoke(["--quiet", "run-operation", operation, "--args", json.dumps(given), *for_dbt])
    if outcome.exception is not None:
        print(outcome.exception, file=sys.stderr)
    return 0 if outcome.success else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("dbt-ivm", description="dbt models on Spark that refresh by exactly what changed")
    commands = parser.add_subparsers(dest="command", required=True)
    dbt = argparse.ArgumentParser(add_help=False)
    for option in FOR_DBT:
        dbt.add_argument(f"--{option.replace('_', '-')}", help="as in dbt")
    for name, _, needs_model, options, help_text in OPERATIONS:
        command = commands.add_parser(name, help=help_text, parents=[dbt])
        if needs_model is not None:
            command.add_argument("model", nargs=None if needs_model else "?")
        if "limit" in options:
            command.add_argument("--limit", type=int, help="rows to show")
        if "dry_run" in options:
            command.add_argument("--dry-run", action="store_true", default=None, help="only show the statements")
    found = commands.add_parser("report", help="what the last dbt run did, by model")
    found.add_argument("--target-path", default="target", help="folder of run_results.json")
    return parser


def report(run_results: Path) -> int:
    """Print the last run; 1 when there is none or a model failed."""
    if not run_results.exists():
        print(f"there is no {run_results}: run dbt first, or name its folder with --target-path", file=sys.stderr)
        return 1
    results = json.loads(run_results.read_text())["results"]
    ours = [r for r in results if (r.get("adapter_response") or {}).get("ivm")]
    failed = [r for r in results if r["status"] in ("error", "fail")]
    print("\n".join(report_lines(ours)) if ours else "no incremental_ivm model in the last run")
    for result in failed:
        print(f"FAILED {result['unique_id'].split('.')[2]}: {result.get('message') or ''}")
    return 1 if failed else 0


def report_lines(results: Sequence[dict[str, Any]]) -> list[str]:
    """One line per model, below it what a user should know: reasons of rebuilds, foreign keys that do not hold."""
    width = max(len(_name(r)) for r in results)
    lines, written, seconds = [], 0, 0.0
    for result in results:
        ivm = result["adapter_response"]["ivm"]
        counts = [v or 0 for v in ivm["rows"].values()]
        written, seconds = written + sum(counts), seconds + result["execution_time"]
        lines.append(f"{_name(result):<{width}}  {result['execution_time']:7.1f} s  {result['message']}")
        indent = " " * (width + 2)
        if ivm.get("way"):
            lines.append(f"{indent}{ivm['way']}, {ivm['statements']} statements")
        for edge in ivm["foreign_keys"]:
            if edge["status"].startswith("violated"):
                lines.append(f"{indent}foreign key {edge['edge']}: {edge['status']}")
    kinds = [r["adapter_response"]["ivm"]["strategy"] for r in results]
    told = ", ".join(f"{kinds.count(k)} {k}" for k in ("create", "incremental", "full", "none") if k in kinds)
    lines.append(f"{len(results)} models: {told}; {written:,} rows changed; {seconds:.1f} s")
    return lines


def _name(result: dict[str, Any]) -> str:
    return str(result["unique_id"].split(".")[2])


if __name__ == "__main__":
    sys.exit(main())

"""A user's project on the built wheel, by the command line: first, second and third run, tests, explain."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MODELS = {"order_facts", "revenue_by_country", "countries"}
#: The rest of the project is run by tests/spark/test_patterns.py.
MARTS = ("--select", "+path:models/marts")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    source = tmp_path_factory.mktemp("source") / "dbt-ivm"
    ignored = shutil.ignore_patterns(".git", ".venv", "build", "*.egg-info", ".run", "target", "dist")
    shutil.copytree(ROOT, source, ignore=ignored)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True, text=True)  # the sdist, and the wheel from the sdist
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has the wheel, and this one's dependencies without its editable install."""
    folder = tmp_path_factory.mktemp("user") / "env"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    installed = next((folder / "lib").glob("python*/site-packages"))
    (installed / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(command, check=True)
    return python


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("integration") / "project"
    shutil.copytree(ROOT / "integration_tests", folder, ignore=shutil.ignore_patterns("target", "logs"))
    return folder


def dbt(python: Path, project: Path, *arguments: str) -> tuple[str, dict[str, dict[str, Any]]]:
    command = [str(python), "-m", "dbt.cli.main", *arguments, "--profiles-dir", "."]
    environment = {**os.environ, "IVM_WAREHOUSE": str(project / "warehouse"), "PYTHONPATH": ""}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    results_file = project / "target" / "run_results.json"
    results = json.loads(results_file.read_text())["results"] if results_file.exists() else []
    by_name = {r["unique_id"].split(".")[2]: {**r, **(r["adapter_response"].get("ivm") or {})} for r in results}
    return done.stdout, by_name


def test_wheel_holds_the_dbt_package(wheel: Path) -> None:
    files = zipfile.ZipFile(wheel).namelist()
    assert "dbt_ivm/dbt_package/dbt_project.yml" in files
    assert "dbt_ivm/dbt_package/macros/materializations/incremental_ivm.sql" in files
    assert not [f for f in files if f.startswith(("tests", "examples", "benchmarks"))]


def test_three_runs_from_the_command_line(python: Path, project: Path) -> None:
    where = "import dbt_ivm, pathlib; print(pathlib.Path(dbt_ivm.__file__).parent)"
    location = subprocess.run(
        [str(python), "-c", where], cwd=project, capture_output=True, text=True, check=True
    ).stdout
    assert str(ROOT) not in location

    output, first = dbt(python, project, "build", *MARTS, "--vars", "{round: 0}", "--exclude", "test_type:data")
    assert {n: first[n]["strategy"] for n in MODELS} == dict.fromkeys(MODELS, "create")
    output, second = dbt(python, project, "run", *MARTS, "--vars", "{round: 1}")
    assert {n: second[n]["strategy"] for n in MODELS} == dict.fromkeys(MODELS, "incremental"), output
    assert "INCREMENTAL +" in output
    output, third = dbt(python, project, "build", *MARTS, "--vars", "{round: 2}", "--exclude", "regions")
    strategies = {n: third[n]["strategy"] for n in MODELS}
    assert strategies["order_facts"] == "incremental" and third["order_facts"]["way"] == "append", output
    assert strategies["revenue_by_country"] == "incremental"
    tests = [r["status"] for n, r in third.items() if "equals_recompute" in n]
    assert tests == ["pass"] * 3

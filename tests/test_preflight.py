"""The checks before anything starts: a fake java in an empty PATH, no JVM."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from scripts import preflight

OPENJDK = 'openjdk version "{}" 2025-04-15\nOpenJDK Runtime Environment (build {}+6)'


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without Java; call it to install one."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    def install(version: str, folder: str = "bin", says: str | None = None) -> Path:
        java = tmp_path / folder / "java"
        java.parent.mkdir(parents=True, exist_ok=True)
        java.write_text(f"#!/bin/sh\necho '{says or OPENJDK.format(version, version)}' >&2\n")
        java.chmod(java.stat().st_mode | stat.S_IXUSR)
        return java

    return install


@pytest.mark.parametrize("version", ["17.0.15", "17", "21.0.2"])
def test_accepts_the_javas_spark_runs_on(machine, version):
    machine(version)
    assert preflight.java_problem() == ""


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", 8), ("11.0.22", 11), ("24.0.1", 24)])
def test_names_the_java_it_found_and_how_to_get_17(machine, version, major):
    java = machine(version)
    problem = preflight.java_problem()
    assert f"{java} is Java {major}" in problem
    assert "openjdk-17" in problem and "JAVA_HOME" in problem


def test_java_missing(machine):
    problem = preflight.java_problem()
    assert "no java in the PATH" in problem and "apt-get install openjdk-17" in problem


def test_java_that_does_not_work(machine):
    machine("", says="The operation couldn’t be completed. Unable to locate a Java Runtime.")
    assert "Unable to locate a Java Runtime" in preflight.java_problem()


def test_java_home_wins_over_the_path(machine, tmp_path, monkeypatch):
    machine("11.0.22")
    machine("17.0.15", folder="jdk-17/bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk-17"))
    assert preflight.java_problem() == ""


def test_java_home_without_java(machine, tmp_path, monkeypatch):
    machine("17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    problem = preflight.java_problem()
    assert str(tmp_path / "gone") in problem and "unset JAVA_HOME" in problem


@pytest.mark.parametrize(("version", "fine"), [((3, 9, 18), False), ((3, 10, 0), True), ((3, 13, 1), True)])
def test_python_version(version, fine):
    problem = preflight.python_problem(version)
    assert (problem == "") is fine
    if not fine:
        assert "3.9.18" in problem and "make PYTHON=" in problem


def test_pyspark_missing(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "dbt-ivm[spark]" in preflight.pyspark_problem()
    assert "python3-venv" in preflight.venv_problem()


@pytest.mark.parametrize(
    ("log", "remedy"),
    [
        ("[unresolved dependency: io.delta#delta-spark_4.1_2.13;4.4.0: not found]", "proxy"),
        ("Server access error at url https://repo1.maven.org/maven2/ (java.net.ConnectException)", "no network"),
        ("java.lang.UnsupportedClassVersionError: ... class file version 61.0", "Java 17"),
        ("OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory failed; Cannot allocate memory", "memory"),
        ("ERROR XSDB6: Another instance of Derby may have already booted the database", "Another Spark process"),
    ],
)
def test_start_failures_have_a_remedy(log, remedy):
    assert remedy in preflight.start_failure(f"WARN something\n{log}\n")


def test_an_unknown_start_failure_is_not_explained_away():
    assert preflight.start_failure("java.lang.IllegalStateException: surprise") == ""


def test_exit_code_and_message(machine, capsys):
    assert preflight.main([]) == 0
    assert preflight.main(["--java"]) == 1
    assert "Java 17 or 21 is needed" in capsys.readouterr().err

"""What was measured, one JSON line each, written cell by cell so that an interrupted run keeps what it has."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.session import CORES, DRIVER_MEMORY, version_of_delta

DEFAULT_FOLDER = Path(__file__).parent / "results"
Record = dict[str, Any]


class Results:
    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.file = folder / f"{name}.jsonl"

    def read(self) -> list[Record]:
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_text().splitlines() if line.strip()]

    def append(self, records: list[Record]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as out:
            out.writelines(json.dumps(record) + "\n" for record in records)

    def done(self) -> set[tuple[Any, ...]]:
        """Steps that are complete, for --resume."""
        return {tuple(record["step"]) for record in self.read() if record["kind"] == "done"}

    def remove(self, steps: set[tuple[Any, ...]]) -> None:
        """A step measured again replaces what was there."""
        kept = [r for r in self.read() if tuple(r.get("step", ())) not in steps]
        if self.file.exists():
            self.file.write_text("".join(json.dumps(record) + "\n" for record in kept))


def machine() -> Record:
    """What a reader needs to judge the numbers; nothing that tells whose machine it was."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "kind": "machine",
        "cores": os.cpu_count(),
        "spark_cores": CORES,
        "memory_gb": round(memory / 2**30),
        "driver_memory": DRIVER_MEMORY,
        "processor": _processor(),
        "versions": {
            "Python": platform.python_version(),
            "Spark": version("pyspark"),
            "Delta": version_of_delta(),
            "dbt-core": version("dbt-core"),
            "dbt-spark": version("dbt-spark"),
            "dbt-ivm": version("dbt-ivm"),
        },
    }


def machine_line(records: list[Record]) -> str:
    """The last machine as a sentence."""
    machines = [r for r in records if r["kind"] == "machine"]
    if not machines:
        return "Nothing measured yet."
    last = machines[-1]
    versions = ", ".join(f"{name} {number}" for name, number in last["versions"].items())
    return (
        f"{last['cores']} cores ({last['processor']}), {last['memory_gb']} GB;"
        f" Spark local[{last['spark_cores']}], driver {last['driver_memory']}. {versions}."
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()

"""Generated tables as parquet files, made on first use and kept in ``benchmarks/.data`` (not in the repository).

Both generators are inside one old version of duckdb, so it gets an environment of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.keys.schema import TABLES, Table

GENERATOR = "duckdb==1.1.3"  # the last version whose wheel has both generators inside
DEFAULT_FOLDER = Path(__file__).parents[1] / ".data"


class Data:
    def __init__(self, scale: float, folder: Path = DEFAULT_FOLDER) -> None:
        self.scale = scale
        self.home = folder
        self.folder = folder / f"sf{scale:g}"

    def file(self, table: Table) -> Path:
        return self.folder / table.benchmark / f"{table.stored_as}.parquet"

    @property
    def is_there(self) -> bool:
        return all(self.file(table).exists() for table in TABLES.values())

    def make(self) -> None:
        """Generates what is missing; a folder is there whole or not at all."""
        if self.is_there:
            return
        unfinished = self.home / f"{self.folder.name}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        wanted = [f"{table.benchmark}:{table.stored_as}" for table in TABLES.values()]
        script = Path(__file__).with_name("generate.py")
        subprocess.run([self._python(), script, unfinished, str(self.scale), *wanted], check=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        unfinished.rename(self.folder)

    def _python(self) -> Path:
        environment = self.home / "generator"
        python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        done = environment / "installed"
        if not done.exists():
            venv.create(environment, with_pip=True, clear=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", GENERATOR], check=True)
            done.touch()
        return python

"""Generated data, made on first use and kept in ``benchmarks/.data`` (not in the repository).

Both generators are inside one old version of duckdb, so it gets an environment of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

GENERATOR = "duckdb==1.1.3"  # the last version whose wheel has both generators inside
DEFAULT_FOLDER = Path(__file__).parent / ".data"


def make(folder: Path, scale: float, wanted: Iterable[str]) -> None:
    """Generates the parts that ``generate.py`` names; the folder is there whole or not at all."""
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    script = Path(__file__).with_name("generate.py")
    subprocess.run([_python(folder.parent), script, unfinished, str(scale), *wanted], check=True)
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)


def _python(home: Path) -> Path:
    environment = home / "generator"
    python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    done = environment / "installed"
    if not done.exists():
        venv.create(environment, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", GENERATOR], check=True)
        done.touch()
    return python

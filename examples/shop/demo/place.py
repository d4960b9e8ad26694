"""Where the demo keeps everything it makes: one folder, removed at the next start, ignored by git."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
RUN = PROJECT / ".run"
LOG = RUN / "spark.log"

#: Rows of the big table; everything else is in proportion.
ROWS_VARIABLE = "DBT_IVM_DEMO_ROWS"
DEFAULT_ROWS = 300_000
LEAST_ROWS = 10_000


class BadSize(ValueError):
    pass


def rows_asked_for() -> int:
    text = os.environ.get(ROWS_VARIABLE) or str(DEFAULT_ROWS)
    if not text.replace("_", "").isdigit() or int(text) < LEAST_ROWS:
        raise BadSize(f"{ROWS_VARIABLE} must be a number of at least {LEAST_ROWS}; it is {text!r}")
    return int(text)


def start_afresh() -> None:
    """An empty folder; paths in profiles.yml are relative to the project, so that becomes the working directory."""
    shutil.rmtree(RUN, ignore_errors=True)
    RUN.mkdir()
    os.chdir(PROJECT)

"""The terminal belongs to the report: what Spark, Ivy, Derby and dbt print goes to a log file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def quiet_output(log: Path) -> Iterator[TextIO]:
    """Send file descriptors 1 and 2 to the log and give back a stream to the real terminal.

    Descriptors, not sys.stdout: the JVM is a child process and writes to the ones it inherits.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    with open(log, "ab") as sink, os.fdopen(os.dup(saved[0]), "w", encoding="utf-8") as terminal:
        os.dup2(sink.fileno(), 1)
        os.dup2(sink.fileno(), 2)
        try:
            yield terminal
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, copy in enumerate(saved, 1):
                os.dup2(copy, number)
                os.close(copy)

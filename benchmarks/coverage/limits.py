"""Work with a time limit, in a process of its own: it can be ended in any statement, and a crash is a result too.

The limit is processor time, so that other work on the machine does not matter.
"""

from __future__ import annotations

import math
import multiprocessing
import resource
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection

from benchmarks.coverage.check import ERROR, Checked

#: A process that waits uses no processor time: so many times the limit is the end of it as well.
PATIENCE = 20


def within(seconds: float, work: Callable[[], Checked]) -> Checked:
    late = Checked(ERROR, f"timeout after {seconds:g} s")
    context = multiprocessing.get_context("fork")  # the work is a closure over what is loaded here
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_report, args=(sender, work, seconds))
    process.start()
    sender.close()
    try:
        if not receiver.poll(seconds * PATIENCE):
            return late
        found: Checked = receiver.recv()
        return found
    except EOFError:
        process.join()
        if process.exitcode == -signal.SIGXCPU:
            return late
        return Checked(ERROR, f"the process died with exit code {process.exitcode}")
    finally:
        process.kill()
        process.join()


def _report(sender: Connection, work: Callable[[], Checked], seconds: float) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), most))
    try:
        found = work()
    except Exception as error:
        found = failure(error)
    sender.send(found)
    sender.close()


def failure(error: Exception) -> Checked:
    """An exception as a result, with the innermost place of this repository where it came up."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "site-packages" not in f.filename]
    place = f" ({frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno})" if frames else ""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return Checked(ERROR, f"{type(error).__name__}{place}: {' '.join(lines)}")

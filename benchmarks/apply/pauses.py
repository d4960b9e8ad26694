"""Time in which the whole machine stood still (a suspended virtual machine), so that no way is charged for it."""

from __future__ import annotations

import threading
import time

BEAT = 0.25
#: shorter gaps are a busy machine, not a suspended one
SHORTEST = 5.0


class Pauses:
    """A thread that only sleeps: when it wakes far too late, nothing else ran either."""

    def __init__(self) -> None:
        self.total = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        last = time.time()
        while True:
            time.sleep(BEAT)
            now = time.time()
            if now - last > SHORTEST:
                self.total += now - last - BEAT
            last = now

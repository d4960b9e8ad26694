"""For all tests: plans are trees of many small objects, and looking for garbage among them all the time costs an eighth."""

from __future__ import annotations

import gc

gc.set_threshold(200_000, 20, 100)

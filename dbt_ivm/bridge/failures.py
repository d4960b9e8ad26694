"""What a failed apply statement means: whose move it is, and whether a full refresh is the exact way on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Remedy(Enum):
    RERUN = "run again"
    REBUILD = "full refresh with the reason"
    DISTRUST_KEY = "a declared key is violated"
    RAISE = "show the engine's error"


@dataclass(frozen=True)
class Failure:
    remedy: Remedy
    reason: str


#: Pattern in the engine's message, what to do, reason shown to the user.  First match wins.
TABLE: tuple[tuple[str, Remedy, str], ...] = (
    (r"IVM_STALE", Remedy.RERUN, "another run refreshed this model at the same time"),
    (r"DELTA_CONCURRENT|ConcurrentAppend|ConcurrentDelete|ConcurrentTransaction|ConcurrentWrite|MetadataChanged",
     Remedy.RERUN, "another writer committed to the storage table at the same time"),
    (r"IVM_DUPLICATE_KEY", Remedy.DISTRUST_KEY, ""),
    (r"IVM_DRIFT", Remedy.REBUILD, "the storage table did not hold rows that the change removes"),
    (r"DELTA_MISSING_CHANGE_DATA", Remedy.REBUILD, "the change data feed was off for some versions of a source"),
    (r"DELTA_CHANGE_DATA_FEED_INCOMPATIBLE|DELTA_CDC_READ_NULL|INCOMPATIBLE_SCHEMA_CHANGE|INCOMPATIBLE_DATA_SCHEMA",
     Remedy.REBUILD, "the schema of a source changed in a way its change data feed cannot bridge"),
    (r"BEYOND_DELETED_FILE_RETENTION", Remedy.REBUILD, "the changes of a source are older than its retention"),
    (r"DELTA_VERSION_NOT_FOUND|DELTA_VERSIONS_NOT_CONTIGUOUS|DELTA_LOG_FILE_NOT_FOUND|DELTA_TRUNCATED_TRANSACTION_LOG",
     Remedy.REBUILD, "the history of a source has a gap"),
    (r"DELTA_CDC_START_VERSION_AFTER_LATEST|DELTA_INVALID_CDC_RANGE", Remedy.REBUILD, "a source went back in time"),
    (r"FILE_NOT_EXIST|FileNotFound|DELTA_FILE_NOT_FOUND|FAILED_READ_FILE|PATH_NOT_FOUND|does not exist",
     Remedy.REBUILD, "files of a source's history were vacuumed"),
)  # fmt: skip


def classify(message: str) -> Failure:
    """The failure behind an engine's message.

    >>> classify("[USER_RAISED_EXCEPTION] IVM_STALE another run ...").remedy
    <Remedy.RERUN: 'run again'>
    """
    for pattern, remedy, reason in TABLE:
        if re.search(pattern, message):
            if remedy is Remedy.DISTRUST_KEY:
                found = re.search(r"IVM_DUPLICATE_KEY ([^\n]*)", message)
                return Failure(remedy, _clean(found[1]) if found else "")
            return Failure(remedy, reason)
    return Failure(Remedy.RAISE, message)


def _clean(text: str) -> str:
    return re.sub(r"\s*SQLSTATE:.*$", "", text).strip()

"""What a reader of the model pays: the facade over a log of a given share against a plain table; and idle refreshes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from benchmarks.apply.changes import change
from benchmarks.apply.compaction import Logs
from benchmarks.apply.measure import refresh
from benchmarks.apply.project import Project
from benchmarks.equality import Differs, checksum
from benchmarks.stages import Stages

REPETITIONS = 5


def queries(project: Project, relation: str) -> dict[str, str]:
    every = ", ".join(project.columns)
    return {
        "scan": f"select bit_xor(xxhash64({every})) from {relation}",
        "filter": f"select count(*), sum(amount) from {relation} where day = 17",
        "aggregate": f"select category, sum(amount), count(*) from {relation} group by category",
    }


def reading(project: Project, logs: Logs, stages: Stages, rows: int, shares: tuple[float, ...]) -> Iterator[dict]:
    """The log is grown from share to share; compaction has been turned off."""
    before = logs.compact("log", rows)
    if before["refreshes"]:
        yield before
    for share in sorted(shares):
        missing = round(share * rows) - logs.dead["log"]
        change(project.tables, "mixed random", max(5, missing * 5 // 4))
        logs.note(refresh(project, "log", stages))
        project.run("rebuild")
        names = {"plain": project.relation("rebuild"), "facade": project.relation("log")}
        plain, facade = (checksum(project.tables.sql, project.columns, names[side]) for side in ("plain", "facade"))
        if plain != facade:
            raise Differs(f"reading at a log share of {share}: the facade differs from the rebuilt table")
        project.tables.vacuum(names["plain"])
        yield {
            "kind": "reading",
            "share": share,
            "tombstones": logs.dead["log"],
            "rows": rows,
            "seconds": _alternating(project, names),
        }


def _alternating(project: Project, names: dict[str, str]) -> dict[str, dict[str, list[float]]]:
    """query → plain/facade → seconds; the first round warms up, the order alternates."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for repetition in range(REPETITIONS + 1):
        for query in ("scan", "filter", "aggregate"):
            for side in sorted(names, reverse=bool(repetition % 2)):
                start = time.perf_counter()
                project.tables.sql(queries(project, names[side])[query])
                if repetition:
                    times[query][side].append(time.perf_counter() - start)
    return {query: dict(sides) for query, sides in times.items()}


def idle(project: Project, stages: Stages, ways: tuple[str, ...], repetitions: int) -> Iterator[dict[str, Any]]:
    """Refreshes with nothing to do."""
    for way in ways:
        found = [refresh(project, way, stages) for _ in range(repetitions)]
        odd = {f.strategy for f in found} - {"none"}
        if odd:
            raise AssertionError(f"{way} did {odd} although nothing changed")
        yield {
            "kind": "idle",
            "model": way,
            "seconds": [f.seconds for f in found],
            "plan": [f.plan for f in found],
            "statements": found[-1].statements,
            "rows_read": found[-1].rows_read,
        }

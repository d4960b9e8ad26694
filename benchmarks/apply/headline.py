"""The few numbers that decide whether the log keeps its promise: flat in the size of the view, cheap to read."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from benchmarks.apply.grid import MUST_SHOW_KEYS, MUST_SHOW_SIZES, MUST_SHOW_WAYS
from benchmarks.apply.summary import CellResult, cells_of, paired_ratios
from benchmarks.markdown import seconds, table
from benchmarks.results import Record

PART = "must-show"


def headline(records: list[Record]) -> Iterable[str]:
    mine = [r for r in records if r.get("part") == PART]
    cells = {(c.view[2], c.keys): c for c in cells_of(mine, PART)}
    if not cells:
        return
    repetitions = min(len(w.seconds) for c in cells.values() for w in c.ways.values())
    yield f"## Headline\n\nJoin view, narrow, mixed random changes; medians of at least {repetitions} repetitions."
    yield table(
        ["rows", "keys", *MUST_SHOW_WAYS, "rebuild / log: median (min–max)", "refreshes equal"],
        [_cell(cell) for _, cell in sorted(cells.items())],
    )
    yield table(["comparison", "value"], [*_ratios(cells), *_idle(mine)])
    yield from _reading(mine)


def _cell(cell: CellResult) -> list[str]:
    times = [seconds(cell.ways[w].median) if w in cell.ways else "–" for w in MUST_SHOW_WAYS]
    ratios = paired_ratios(cell, "rebuild", "log") if {"rebuild", "log"} <= cell.ways.keys() else []
    spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})" if ratios else "–"
    compared = [r["equal"] for name in ("merge", "log", "auto") if name in cell.ways for r in cell.ways[name].records]
    return [f"{cell.view[2]:,}", f"{cell.keys:,}", *times, spread, f"{sum(compared)} of {len(compared)}"]


def _ratios(cells: dict[tuple[int, int], CellResult]) -> Iterable[list[str]]:
    (small, large), (few, many) = MUST_SHOW_SIZES, MUST_SHOW_KEYS
    logs = {place: cell.ways["log"].median for place, cell in cells.items() if "log" in cell.ways}
    for keys in (few, many):
        if {(small, keys), (large, keys)} <= logs.keys():
            ratio = logs[large, keys] / logs[small, keys]
            yield [f"log, {keys:,} keys: {large:,} rows / {small:,} rows", f"{ratio:.2f}"]
    for size in (small, large):
        if {(size, few), (size, many)} <= logs.keys():
            ratio = logs[size, few] / logs[size, many]
            yield [f"log, {size:,} rows: {few:,} keys / {many:,} keys", f"{ratio:.2f}"]


def _idle(records: list[Record]) -> Iterable[list[str]]:
    for record in records:
        if record["kind"] == "idle":
            name = f"nothing changed, {record['model']}, {record['size']:,} rows"
            median = statistics.median(record["seconds"])
            yield [name, f"{median:.2f} s, {record['statements']} statements, {record['rows_read']} rows read"]


def _reading(records: list[Record]) -> Iterable[str]:
    rows = []
    for record in records:
        if record["kind"] == "reading":
            medians = {q: [statistics.median(t[s]) for s in ("facade", "plain")] for q, t in record["seconds"].items()}
            ratios = [a / b for a, b in medians.values()]
            texts = [f"{seconds(a)} / {seconds(b)} = {a / b:.2f}" for a, b in medians.values()]
            rows.append(
                [f"{record['size']:,}", f"{record['share']:.1%}", *texts, f"{statistics.geometric_mean(ratios):.2f}"]
            )
    if rows:
        yield "Reading through the facade, not compacted (seconds of facade / plain table, medians of 5):"
        yield table(["rows", "log share", "scan", "filter", "aggregate", "geometric mean"], rows)

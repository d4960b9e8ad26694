"""benchmarks/results/apply.md: the machine, the headline table, every cell, reading, compaction."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from itertools import groupby

from benchmarks.apply.chart import chart
from benchmarks.apply.grid import SIZES, WAYS
from benchmarks.apply.headline import headline
from benchmarks.apply.summary import CellResult, amortised, cells_of, compaction_seconds
from benchmarks.markdown import seconds, short, table
from benchmarks.results import Record, Results, machine_line

HOW = """One JVM, real dbt runs, one model per way over the same sources, order of the ways rotated, medians.
*Seconds* are dbt's `execution_time` of the model: the whole refresh. After every repetition each model is compared with
the rebuilt table (or, where that was not run, with the query) by a checksum of all rows, and below 2.7 M rows once per
cell by EXCEPT ALL. One difference stops the benchmark.

| way | model |
|---|---|
| rebuild | dbt `table` |
| by_hand | dbt-spark `incremental`, merge by key, filter on a version column. *wrong*: deletes do not reach it |
| rewrite | `incremental_ivm` with `refresh: full` |
| merge | `incremental_ivm` with `apply: merge`; of insert-only changes the way is *append* |
| log | `incremental_ivm` with `apply: log`, compaction kept out and timed apart |
| auto | `incremental_ivm` as it comes, compaction kept out too |

*Keys* are changed rows of the fact table; mixed: a fifth inserted, a fifth deleted, the rest updated. Clustered: one
range of ids. An aggregate has two fact rows per group, at 27 M one. ≈: measured once for this view, the cost does not
follow the change."""

GRID = """## Grid

Seconds, the fastest in bold. The chart is the change *mixed random, 1,000 keys*.

![Seconds per way against the size of the view](apply.svg)"""


def write_report(results: Results) -> None:
    records = results.read()
    results.folder.mkdir(parents=True, exist_ok=True)
    cells = cells_of(records, "grid")
    parts = ["# Ways to apply a change", _machine(records), HOW, *headline(records)]
    parts += [*_grid(cells, records), *_auto(cells), *_reading(records), *_compaction(records), *_idle(records)]
    (results.folder / "apply.md").write_text("\n\n".join(p for p in parts if p) + "\n")
    (results.folder / "apply.svg").write_text(chart(cells))


def _machine(records: list[Record]) -> str:
    scales = {r["scale"] for r in records if r["kind"] == "machine"} - {1.0}
    trial = f"**A trial at scale {min(scales)}: sizes below are nominal.** " if scales else ""
    return trial + machine_line(records)


def _grid(cells: list[CellResult], records: list[Record]) -> Iterable[str]:
    if not cells:
        return
    compactions = compaction_seconds(records)
    yield GRID
    for view, group in groupby(cells, key=lambda c: c.view):
        shown = list(group)
        ways = [w for w in WAYS if any(w in c.ways for c in shown)]
        yield f"### {view[0]}, {view[1]}, {view[2]:,} rows"
        header = ["change", "keys", *ways, "log with compaction", "auto took", "over best"]
        yield table(header, [[*_times(c, ways), _with_compaction(c, compactions), *_choice(c)] for c in shown])
        yield "Rows read / rows written:"
        yield table(["change", "keys", *ways], [[c.change, f"{c.keys:,}", *(_rows(c, w) for w in ways)] for c in shown])


def _times(cell: CellResult, ways: list[str]) -> list[str]:
    fastest = min(way.median for way in cell.ways.values())
    return [cell.change, f"{cell.keys:,}", *(_time(cell, way, fastest) for way in ways)]


def _time(cell: CellResult, name: str, fastest: float) -> str:
    way = cell.ways.get(name)
    if way is None:
        return "–"
    text = seconds(way.median)
    text = f"**{text}**" if way.median == fastest else f"≈ {text}" if way.is_borrowed else text
    if not all(r["equal"] for r in way.records):
        text += " wrong"
    odd = {r["strategy"] for r in way.records} - {"", "incremental"}
    return text + (f" ({', '.join(sorted(odd))})" if odd and name != "rewrite" else "")


def _with_compaction(cell: CellResult, compactions: dict[tuple[str, str, int], float]) -> str:
    found = amortised(cell, compactions)
    return "–" if found is None else f"{seconds(found[1])} (every {found[0]})"


def _choice(cell: CellResult) -> list[str]:
    if "auto" not in cell.ways:
        return ["–", "–"]
    ratio, way = cell.choice_ratio, cell.ways["auto"].last["way"]
    name = cell.choice if way == cell.choice else f"{cell.choice}: {way}"
    return [name, "–" if ratio is None else f"{ratio:.2f}" + ("" if cell.best == cell.choice else f" ({cell.best})")]


def _rows(cell: CellResult, name: str) -> str:
    way = cell.ways.get(name)
    if way is None or way.is_borrowed:
        return "–"
    read = statistics.median(r["rows_read"] for r in way.records)
    written = [r["rows_written"] for r in way.records if r["rows_written"] is not None]
    return f"{short(read)} / {short(statistics.median(written)) if written else '–'}"


def _auto(cells: list[CellResult]) -> Iterable[str]:
    rated = [(c, c.choice_ratio) for c in cells]
    known = [(c, r) for c, r in rated if r is not None]
    if not known:
        return
    yield "## The auto rule"
    rows = []
    for size in SIZES:
        ratios = [r for c, r in known if c.view[2] == size]
        if ratios:
            rows.append([f"{size:,}", *_within(ratios)])
    rows.append(["all", *_within([r for _, r in known])])
    yield "The way that `auto` took against the fastest that the package can choose (rewrite, append/merge, log)."
    yield table(["rows of the view", "cells", "chose the fastest", "within 1.2", "geometric mean", "worst"], rows)


def _within(ratios: list[float]) -> list[str]:
    share = sum(r <= 1.2 for r in ratios) / len(ratios)
    exact = sum(r == 1 for r in ratios)
    return [
        f"{len(ratios)}",
        f"{exact}",
        f"{share:.0%}",
        f"{statistics.geometric_mean(ratios):.2f}",
        f"{max(ratios):.2f}",
    ]


def _reading(records: list[Record]) -> Iterable[str]:
    found = [r for r in records if r["kind"] == "reading" and r["part"] == "grid"]
    if not found:
        return
    yield "## Reading through the facade\n\nSeconds of facade / plain table; the ratio of medians; join views."
    rows = []
    for record in sorted(found, key=lambda r: (r["size"], r["width"], r["share"])):
        medians = {q: [statistics.median(t[s]) for s in ("facade", "plain")] for q, t in record["seconds"].items()}
        ratios = [a / b for a, b in medians.values()]
        texts = [f"{seconds(a)} / {seconds(b)} = {a / b:.2f}" for a, b in medians.values()]
        about = [f"{record['size']:,}", record["width"], f"{record['share']:.1%}"]
        rows.append([*about, *texts, f"{statistics.geometric_mean(ratios):.2f}"])
    yield table(["rows", "width", "log share", "scan", "filter", "aggregate", "geometric mean"], rows)


def _compaction(records: list[Record]) -> Iterable[str]:
    found = compaction_seconds(records)
    if found:
        yield "## Compaction\n\nMedian seconds of `ivm_compact`; the grid has it divided by the refreshes between two."
        rows = [[*view[:2], f"{view[2]:,}", seconds(s)] for view, s in sorted(found.items(), key=lambda i: i[0][2])]
        yield table(["view", "width", "rows", "seconds"], rows)


def _idle(records: list[Record]) -> Iterable[str]:
    found = [r for r in records if r["kind"] == "idle" and r["part"] == "grid"]
    if found:
        yield "## Nothing changed\n\nMedian seconds of a model whose sources are as they were."
        yield table(
            ["view", "width", "rows", "model", "seconds", "statements", "rows read"],
            [
                [r["view"], r["width"], f"{r['size']:,}", r["model"], seconds(statistics.median(r["seconds"])),
                 str(r["statements"]), str(r["rows_read"])]
                for r in found
            ],
        )  # fmt: skip

"""benchmarks/results/keys.md: per setting ratios, seconds, effort and what was right; then asked and measured."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.keys import summary
from benchmarks.keys.chart import chart
from benchmarks.keys.must_show import must_show
from benchmarks.keys.plan import Setting
from benchmarks.keys.strategies import BY_HAND, BY_HAND_RIGHT, M_OPT, STRATEGIES, TABLE, TRUST, UNOPTIMISED, VERIFY
from benchmarks.keys.summary import Cell, Ratio, cells_of, geometric_mean, settings_of
from benchmarks.keys.views import GROUPED, SHAPES
from benchmarks.markdown import seconds, short, table
from benchmarks.results import Record, Results, machine_line

HOW = """TPC-derived, not a TPC result: the tables come from duckdb's generators, views and changes are our own.

One JVM, real dbt runs, one model per strategy over the same sources, the order rotated. Every repetition is a new
change of the same size: a share of each dimension's rows is inserted and another deleted, facts follow their foreign
keys. *Seconds* are dbt's `execution_time` of the model, the whole refresh; *delta only* is the SELECT of the rows to
apply, computed before any refresh and thrown away. *Rows read* are Spark's input records. Ratios are medians of
paired ratios with min–max; **bold**: at least three repetitions, all above 1. After each repetition every model is
compared with the rebuilt table by a checksum of all rows, and when that differs by EXCEPT ALL both ways.

"""

#: heading, above, below, measure
RATIOS = (
    ("delta only: unoptimised / trust", UNOPTIMISED, TRUST, summary.DELTA_SECONDS),
    ("unoptimised / trust", UNOPTIMISED, TRUST, summary.SECONDS),
    ("table / trust", TABLE, TRUST, summary.SECONDS),
    ("verify / trust", VERIFY, TRUST, summary.SECONDS),
    ("kept subtrees / trust", M_OPT, TRUST, summary.SECONDS),
    ("by hand / trust", BY_HAND, TRUST, summary.SECONDS),
    ("by hand, right / trust", BY_HAND_RIGHT, TRUST, summary.SECONDS),
    ("rows read, delta only: unoptimised / trust", UNOPTIMISED, TRUST, summary.DELTA_ROWS_READ),
    ("rows read: unoptimised / trust", UNOPTIMISED, TRUST, summary.ROWS_READ),
)


def write_report(results: Results) -> bool:
    """Writes page and chart; False when a refresh of ours was wrong or failed."""
    records = results.read()
    cells = cells_of(records)
    results.folder.mkdir(parents=True, exist_ok=True)
    parts = ["# What foreign keys save", machine_line(records), HOW + _strategies()]
    settings = settings_of(cells)
    for setting in settings:
        parts += _section(setting, [c for c in cells if c.setting == setting], records, setting == settings[0])
    parts += ["## Asked and measured", must_show.__doc__ or "", must_show(cells)]
    (results.folder / "keys.md").write_text("\n\n".join(part for part in parts if part) + "\n")
    if settings:
        shown = [c for c in cells if c.setting == settings[0]]
        (results.folder / "keys.svg").write_text(chart(shown, settings[0].name))
    ours = [name for name, strategy in STRATEGIES.items() if strategy.is_ours]
    return not any(c.wrong(name) or name in c.failures for c in cells for name in ours)


def _strategies() -> str:
    return table(["strategy", "model"], [[s.name, s.about] for s in STRATEGIES.values()])


def _section(setting: Setting, cells: list[Cell], records: list[Record], has_chart: bool) -> Iterable[str]:
    repetitions = sorted({len(found) for cell in cells for found in cell.records.values()})
    yield f"## {setting.name}\n\nRepetitions: {'–'.join(map(str, dict.fromkeys((repetitions[0], repetitions[-1]))))}."
    yield _changes(setting, records)
    if has_chart:
        yield "![Seconds over those of foreign keys trusted](keys.svg)"
    yield table(["view", "rows", *(heading for heading, *_ in RATIOS)], [*map(_ratios, cells), *_means(cells)])
    used = [name for name in STRATEGIES if any(name in c.records or name in c.failures for c in cells)]
    yield "Median seconds of the whole refresh (delta only), how it was applied, whether all repetitions were right:"
    yield table(["view", *used], [[_name(c), *(_seconds(c, name) for name in used)] for c in cells])
    ours = [name for name in used if STRATEGIES[name].is_ours]
    yield "Statements of the last refresh / rows read (delta only):"
    yield table(["view", *ours], [[_name(c), *(_effort(c, name) for name in ours)] for c in cells])
    failures = [
        [_name(c), name, message.replace("\n", " ")[:300]] for c in cells for name, message in c.failures.items()
    ]
    if failures:
        yield "Failed, and left out from then on:"
        yield table(["view", "strategy", "message"], failures)
    examples = [[_name(c), name, _example(c, name)] for c in cells for name in ours if c.wrong(name)]
    if examples:
        yield "**Wrong, and it must not be:**"
        yield table(["view", "strategy", "a row that differs"], examples)


def _changes(setting: Setting, records: list[Record]) -> str:
    """Rows changed in the first repetition of each view."""
    rows = []
    for record in records:
        if record["kind"] != "change" or record["repetition"] != 0:
            continue
        if Setting(record["scale"], record["share"], record["change"]) == setting:
            done = [f"{name} {_signs(counts)}" for name, counts in record["tables"].items()]
            rows.append([record["view"], ", ".join(done) or "nothing"])
    return table(["view", "rows changed in the first repetition"], rows)


def _signs(counts: dict[str, int]) -> str:
    signs = (("inserted", "+"), ("updated", "~"), ("deleted", "−"))
    return " ".join(f"{sign}{counts[kind]:,}" for kind, sign in signs if counts.get(kind))


def _name(cell: Cell) -> str:
    return f"{cell.view}, grouped" if cell.shape == GROUPED else cell.view


def _ratios(cell: Cell) -> list[str]:
    return [_name(cell), short(cell.rows), *(_ratio(cell.ratio(a, b, m)) for _, a, b, m in RATIOS)]


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return "–"
    median = f"**{ratio.median:.2f}**" if ratio.is_a_win else f"{ratio.median:.2f}"
    return f"{median} ({min(ratio.pairs):.2f}–{max(ratio.pairs):.2f})"


def _means(cells: list[Cell]) -> Iterable[list[str]]:
    for shape in SHAPES:
        mine = [c for c in cells if c.shape == shape]
        means = [geometric_mean(mine, above, below, measure) for _, above, below, measure in RATIOS]
        if mine:
            name = "geometric mean" + (", grouped" if shape == GROUPED else "")
            yield [f"*{name}*", "", *("–" if mean is None else f"{mean:.2f}" for mean in means)]


def _seconds(cell: Cell, strategy: str) -> str:
    if strategy not in cell.records:
        return "failed" if strategy in cell.failures else "–"
    whole, delta = cell.median(strategy), cell.median(strategy, summary.DELTA_SECONDS)
    text = seconds(whole or 0) + (f" ({seconds(delta)})" if delta else "")
    ways = sorted({r["way"] or r["took"] for r in cell.records[strategy].values()} - {""})
    wrong = cell.wrong(strategy)
    return " ".join([text, *ways, f"**wrong {wrong}×**" if wrong else "right"])


def _effort(cell: Cell, strategy: str) -> str:
    records = cell.records.get(strategy)
    if not records:
        return "–"
    read, delta = cell.median(strategy, summary.ROWS_READ), cell.median(strategy, summary.DELTA_ROWS_READ)
    return f"{records[max(records)]['statements']} / {short(read or 0)}" + (f" ({short(delta)})" if delta else "")


def _example(cell: Cell, strategy: str) -> str:
    return _one_line(next(str(r["why"]) for r in cell.records[strategy].values() if not r["equal"]))


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "¦")[:300]

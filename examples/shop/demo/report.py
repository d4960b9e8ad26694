"""What the user sees: steps with their seconds, a spinner while they run, tables of results.  Fits 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from examples.shop.demo.dbt_command import ModelRun, TestRun

COLOURS = {"create": "cyan", "incremental": "green", "none": "blue"}
INDENT = 3


class Report:
    def __init__(self, terminal: TextIO) -> None:
        self.console = Console(file=terminal, highlight=False)
        self.started = perf_counter()

    @property
    def seconds(self) -> float:
        return perf_counter() - self.started

    def title(self, text: str, below: str) -> None:
        self.console.print(f"\n[bold]{text}[/]\n[dim]{below}[/]", soft_wrap=True)

    @contextmanager
    def step(self, title: str, command: str = "") -> Iterator[Callable[[str], None]]:
        """A step: its heading, a spinner whose text the caller moves on, the seconds when it is done."""
        self.console.print(f"\n[bold]{title}[/]", soft_wrap=True)
        if command:
            self.line(f"[cyan]$ {escape(command)}[/]")
        start = perf_counter()
        with self.console.status("...") as status:
            yield lambda text: status.update(f"[dim]{escape(text)} ...[/]")
        self.line(f"[dim]{perf_counter() - start:.1f} s[/]")

    def line(self, text: str) -> None:
        self.console.print((" " * INDENT + text).rstrip(), soft_wrap=True)

    def builds(self, runs: Sequence[ModelRun]) -> None:
        table = _table("model", "status line of dbt", ">seconds")
        for run in runs:
            table.add_row(run.name, _status(run), f"{run.seconds:.1f}")
        self._table(table)

    def refreshes(self, runs: Sequence[ModelRun], full: Mapping[str, ModelRun]) -> None:
        """Each refresh beside a full build of the same model."""
        table = _table("model", "status line of dbt", ">seconds", ">(full)")
        for run in runs:
            table.add_row(run.name, _status(run), f"{run.seconds:.1f}", f"({full[run.name].seconds:.1f})")
        changed, rows = sum(r.changed for r in runs), sum(r.total or 0 for r in runs)
        seconds, before = sum(r.seconds for r in runs), sum(full[r.name].seconds for r in runs)
        table.add_row(
            "[bold]together[/]",
            f"[bold]{changed:,} of {rows:,} rows changed[/]",
            f"[bold]{seconds:.1f}[/]",
            f"({before:.1f})",
        )
        self._table(table)
        self.line("[dim]+ inserted  ~ updated  - deleted;  (full): seconds of the warm full build above[/]")

    def foreign_keys(self, run: ModelRun) -> None:
        """What became of each declared foreign key along the joins of a model."""
        table = _table(f"foreign keys of {run.name}", "status")
        for edge, status in run.foreign_keys:
            table.add_row(escape(edge), f"[{'red' if status.startswith('violated') else 'green'}]{escape(status)}[/]")
        self._table(table)
        self.line(
            "[dim]touched: keys removed and inserted in one window; only rows that reference them are looked up[/]"
        )

    def tests(self, runs: Sequence[TestRun]) -> None:
        table = _table("model", "dbt_ivm.equals_recompute", ">seconds")
        for run in runs:
            verdict = "[green]PASS[/]" if run.passed else f"[bold red]FAIL[/] {escape(run.message)}"
            table.add_row(run.model, verdict, f"{run.seconds:.1f}")
        self._table(table)

    def text(self, text: str, most_lines: int) -> None:
        """Text as it is, cut to a number of lines that can be read."""
        lines = text.rstrip().splitlines()
        for line in lines[:most_lines]:
            self.line(escape(line))
        if len(lines) > most_lines:
            self.line(f"[dim]... and {len(lines) - most_lines} lines more[/]")

    def success(self, text: str) -> None:
        self.console.print(f"\n[bold green]{text}[/]\n", soft_wrap=True)

    def problem(self, text: str, where: str) -> None:
        self.console.print(f"\n[bold red]The demo stopped.[/] {escape(text)}", soft_wrap=True)
        self.console.print(f"[dim]{escape(where)}[/]", soft_wrap=True)

    def _table(self, table: Table) -> None:
        self.console.print(Padding(table, (0, 0, 0, INDENT), expand=False))


def _status(run: ModelRun) -> str:
    return f"[{COLOURS.get(run.strategy, 'red')}]{escape(run.message)}[/]"


def _table(*columns: str) -> Table:
    """A plain table; a column whose name starts with > holds numbers."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for name in columns:
        table.add_column(name.removeprefix(">"), justify="right" if name.startswith(">") else "left", no_wrap=True)
    return table

"""Plans as text: SQL and facts in, the expected explain beside them, in ``tests/fixtures/*.sql``.

    # title: what the case shows
    # changes: shop.fact 3 5 insert_only, shop.dim 0 1      (source, version in the view, version now)
    # tables: shop.odd id int, m map<string,int>            (besides the shop's; ``key(a, b)`` declares a key)
    select ...
    ----
    expected explain, without the statements

Cases are separated by a line of ``====``.  ``DBT_IVM_UPDATE_FIXTURES=1 pytest tests/test_fixtures.py`` rewrites the
expected text; read the diff before you commit it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dbt_ivm.api import plan_view, table
from dbt_ivm.catalog.tables import Table
from dbt_ivm.errors import UserError

FOLDER = Path(__file__).parent / "fixtures"
UPDATE = bool(os.environ.get("DBT_IVM_UPDATE_FIXTURES"))
CASE, ANSWER = "====", "----"

SHOP = (
    table(
        "shop.fact",
        {"id": "bigint", "dim_id": "int", "amount": "decimal(10,2)", "price": "double", "day": "date"},
        primary_key=["id"],
    ),
    table("shop.dim", {"id": "int", "name": "string", "region": "string"}, primary_key=["id"]),
    table("shop.event", {"id": "int", "kind": "string"}),
)


@dataclass(frozen=True)
class Case:
    title: str
    facts: dict[str, str]
    sql: str
    expected: str

    @property
    def tables(self) -> tuple[Table, ...]:
        return (*SHOP, *(_table(line) for line in self.facts.get("tables", "").split(";") if line.strip()))

    def answer(self) -> str:
        """Strategy, view plan and delta plan; a wrong query answers with its error."""
        changes, insert_only = _changes(self.facts.get("changes", ""))
        try:
            plan = plan_view(self.sql, self.tables, changes=changes, insert_only=insert_only)
        except UserError as error:
            return f"error: {error}"
        return replace(plan, steps=()).explain().strip()

    def text(self) -> str:
        facts = "".join(f"# {name}: {value}\n" for name, value in self.facts.items())
        return f"{facts}{self.sql}\n{ANSWER}\n{self.expected}\n"


def _changes(text: str) -> tuple[dict[str, tuple[int, int]] | None, list[str]]:
    if not text:
        return None, []
    changes: dict[str, tuple[int, int]] = {}
    insert_only = []
    for entry in text.split(","):
        name, before, now, *more = entry.split()
        changes[name] = (int(before), int(now))
        if more == ["insert_only"]:
            insert_only.append(name)
    return changes, insert_only


def _table(text: str) -> Table:
    name, columns = text.strip().split(" ", 1)
    key = re.search(r"key\((.*?)\)", columns)
    listed = columns[: key.start()].rstrip(", ") if key else columns
    typed = dict(pair.strip().split(" ", 1) for pair in re.split(r",\s+", listed))
    return table(name, typed, primary_key=[c.strip() for c in key[1].split(",")] if key else [])


def load(path: Path) -> list[Case]:
    """The cases of a file; lines decide, so that SQL may contain anything."""
    cases = []
    for block in re.split(rf"^{CASE}\n", path.read_text(), flags=re.MULTILINE):
        query, _, expected = block.partition(f"\n{ANSWER}\n")
        lines = query.strip("\n").split("\n")
        facts: dict[str, str] = {}
        while lines and lines[0].startswith("# "):
            name, _, value = lines.pop(0)[2:].partition(":")
            facts[name.strip()] = value.strip()
        cases.append(Case(facts["title"], facts, "\n".join(lines), expected.strip("\n")))
    return cases


def every_case() -> Iterator[tuple[str, Case]]:
    for path in sorted(FOLDER.glob("*.sql")):
        for case in load(path):
            yield path.name, case


@pytest.mark.parametrize("case", [pytest.param(c, id=f"{file}: {c.title}") for file, c in every_case()])
def test_plan_is_the_expected_text(case: Case) -> None:
    if not UPDATE:
        assert case.answer() == case.expected


@pytest.mark.skipif(not UPDATE, reason="only when the expected text is rewritten")
def test_rewrite_expected_text() -> None:
    for path in sorted(FOLDER.glob("*.sql")):
        cases = [replace(c, expected=c.answer()) for c in load(path)]
        path.write_text(f"{CASE}\n".join(c.text() for c in cases))


def test_refusals_are_tested_as_carefully_as_successes() -> None:
    refused = [c for _, c in every_case() if c.expected.startswith(("strategy: full", "error:"))]
    assert len(refused) >= 0.4 * len(list(every_case()))


def test_titles_are_unique() -> None:
    titles = [(file, c.title) for file, c in every_case()]
    assert len(set(titles)) == len(titles)

"""The documentation against the code: generated pages, links, one page per operator, options, error codes, and every
plan and statement that a page quotes.

A page quotes the planner like this (the words after ``sql`` and ``text`` are not shown when the page is rendered):

    ```sql view shop.orders=3..5       a query, and which sources changed between which versions; "+" after a
                                       version: rows were only added; "option:value" as under meta.ivm
    ```text plan                       lines of explain(), in order; a line with … stands for anything left out
    ```sql emitted                     the same, for the statement
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from dbt_ivm import plan_view, table
from dbt_ivm.operators import DELTA_OPERATORS, VIEW_OPERATORS
from dbt_ivm.refresh.options import CHOICES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w+) (view|plan|emitted)(.*)$")
ELLIPSIS = "…"
#: Numbers of generated aliases (``g2``, ``t14``) are not compared: they move with every change of the renderer.
ALIAS = re.compile(r"\b([a-z]|copy)\d+(?=s?\b)")

TABLES = (
    table(
        "shop.orders",
        {"id": "bigint", "customer_id": "bigint", "amount": "decimal(12,2)", "placed": "date"},
        primary_key=["id"],
    ),
    table("shop.customer", {"id": "bigint", "segment": "string"}, primary_key=["id"]),
    table("shop.events", {"kind": "string", "value": "int"}),
    table("shop.delivery", {"id": "bigint", "supplier_id": "bigint", "amount": "int"}, primary_key=["id"]),
    table("shop.supplier", {"id": "bigint", "nation_id": "bigint", "name": "string"}, primary_key=["id"]),
    table("shop.nation", {"id": "bigint", "label": "string"}, primary_key=["id"]),
)


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "scripts" / "generate_docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def module_name(operator: type) -> str:
    return operator.__module__.rsplit(".", 1)[1]


def test_generated_pages_are_committed() -> None:
    assert generator().differing() == [], "run python scripts/generate_docs.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    targets = [t.split("#")[0] for t in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in t]
    assert [t for t in targets if t and not (page.parent / t).exists()] == []


@pytest.mark.parametrize("operator", VIEW_OPERATORS, ids=module_name)
def test_every_view_operator_has_a_page(operator: type) -> None:
    page = DOCS / "operators" / f"{module_name(operator)}.md"
    headings = [line[3:] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("## ")]
    assert headings == ["Linearity", "Example", "Rule", "SQL emitted", "Limits"]
    assert page.name in (DOCS / "operators" / "README.md").read_text(encoding="utf-8")


def test_every_delta_operator_is_described() -> None:
    page = (DOCS / "operators" / "delta_operators.md").read_text(encoding="utf-8")
    assert [o.__name__ for o in DELTA_OPERATORS if f"## {o.__name__}" not in page] == []


def test_every_option_and_value_is_in_the_readme() -> None:
    rows = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    for option, values in CHOICES.items():
        described = " ".join(r for r in rows if f"`{option}" in r)
        assert [v for v in values if f"`{v}`" not in described and f": {v}`" not in described] == [], option


def test_every_error_code_is_in_the_operations_page() -> None:
    page = (DOCS / "operations.md").read_text(encoding="utf-8")
    source = "".join(f.read_text(encoding="utf-8") for f in sorted((ROOT / "dbt_ivm").rglob("*.py")))
    codes = set(re.findall(r'"(IVM_[A-Z_]+)"', source)) - {"IVM_ERROR"}  # the base class, never raised
    assert sorted(c for c in codes if f"`{c}`" not in page) == []


def quotations() -> list[tuple[str, str, str, list[str], str]]:
    """(page and line, changes, query, quoted lines, kind) of every quotation."""
    found = []
    for page in PAGES:
        query, changes, kind, start = "", "", "", 0
        block: list[str] | None = None
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            fence = FENCE.match(line)
            if fence and block is None:
                block, kind, words = [], fence[2], fence[3]
                if kind == "view":
                    changes = words.strip()
                start = number
            elif line.startswith("```") and block is not None:
                if kind == "view":
                    query = "\n".join(block)
                else:
                    found.append((f"{page.relative_to(ROOT)}:{start}", changes, query, block, kind))
                block = None
            elif block is not None:
                block.append(line)
    return found


def planned(query: str, changes: str) -> tuple[str, str]:
    """The plans and the statements for a query."""
    windows, only_added = {}, []
    options = dict(word.split(":") for word in changes.split() if ":" in word)
    for word in (w for w in changes.split() if ":" not in w):
        name, versions = word.split("=")
        if versions.endswith("+"):
            only_added.append(name)
        before, now = versions.rstrip("+").split("..")
        windows[name] = (int(before), int(now))
    plan = plan_view(query, TABLES, model="shop.m", changes=windows or None, insert_only=only_added, options=options)
    plans = "".join(p.explain().split("\nstatement 1")[0] for p in (plan, *plan.auxiliary))
    return plans, "\n".join(step.sql for step in plan.steps)


def comparable(line: str) -> str:
    return ALIAS.sub(r"\1#", line.strip())


@pytest.mark.parametrize("quotation", quotations(), ids=lambda q: q[0])
def test_quoted_plans_and_statements_are_real(quotation: tuple[str, str, str, list[str], str]) -> None:
    _, changes, query, block, kind = quotation
    plans, statement = planned(query, changes)
    rest = iter(comparable(line) for line in (plans if kind == "plan" else statement).splitlines())
    for line in block:
        wanted = comparable(line)
        if wanted and ELLIPSIS not in wanted:
            assert any(wanted == real for real in rest), f"not in the planner's output, or not in this order: {wanted}"

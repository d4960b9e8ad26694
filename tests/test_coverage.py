"""The check of benchmarks/coverage on a tiny schema: what is equal passes, what is wrong is found."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from benchmarks.coverage.check import EQUAL, ERROR, WRONG, Check, Checked, Comparison, Versions
from benchmarks.coverage.compare import unmatched
from benchmarks.coverage.data import TableData, read_table
from benchmarks.coverage.history import History
from benchmarks.coverage.limits import failure, within
from benchmarks.coverage.on_duckdb import SCHEMA, DuckEngine
from benchmarks.coverage.planned import Planned, declare, plan_model
from benchmarks.coverage.report import page_text
from benchmarks.coverage.rewrite import Model, model_of
from benchmarks.coverage.run import record
from benchmarks.coverage.schema import TableKeys
from benchmarks.coverage.steering import settled_columns, wanted_values
from tests.property.duck import Duck

SALES = TableKeys("sales", ("s_item", "s_ticket"), (("s_item", "item"), ("s_shop", "shop")))
SHOP = TableKeys("shop", ("p_shop",))
ROWS = {
    SHOP: "SELECT i::INTEGER AS p_shop, 'town ' || i % 3 AS p_town FROM range(8) AS t(i)",
    SALES: "SELECT (i % 20)::INTEGER AS s_item, i::INTEGER AS s_ticket, (i % 8)::INTEGER AS s_shop,"
    " (i / 7)::DECIMAL(7,2) AS s_price FROM range(400) AS t(i)",
}
GROUPED = """
    select p_town, sum(s_price), avg(s_price) as mean from sales, shop
    where s_shop = p_shop and p_town in ('town 1', 'village') group by p_town order by 2 desc limit 10
"""
PLAIN = "select s_ticket, p_town, s_ticket from sales join shop on s_shop = p_shop where s_price > 3"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TableData]:
    folder = tmp_path_factory.mktemp("coverage")
    with duckdb.connect(config={"threads": 1}) as database:
        for keys, rows in ROWS.items():
            database.execute(f"COPY ({rows}) TO '{folder / keys.name}.parquet' (FORMAT parquet)")
    return {keys.name: read_table(keys, Path(folder / f"{keys.name}.parquet")) for keys in ROWS}


def check(text: str, tables: dict[str, TableData], engine: type[DuckEngine] = DuckEngine, **options: Any) -> Checked:
    model = model_of(text, tables)
    columns = {c for t in tables.values() for c in t.columns}
    duck = Duck()
    history = History(duck.connection, tables, wanted=wanted_values([model.original], columns))
    declared = declare(tables.values(), SCHEMA, foreign_keys=False)
    return Check(model.sql, declared, f"{SCHEMA}.model", engine(duck, history, model), options).run(rounds=3)


@pytest.mark.parametrize("query", [GROUPED, PLAIN])
@pytest.mark.parametrize("apply", ["merge", "log"])
def test_a_right_model_is_equal_after_changes_that_move_it(
    query: str, apply: str, tables: dict[str, TableData]
) -> None:
    found = check(query, tables, apply=apply)
    assert (found.verdict, found.detail, found.moved, len(found.rows)) == (EQUAL, "", 3, 4)


class LosesARow(DuckEngine):
    """The storage table loses a row after the second round."""

    def compare(self, facade: exp.Select, versions: Versions) -> Comparison:
        if versions[f"{SCHEMA}.sales"] == 4:
            self.duck.connection.execute("DELETE FROM model__ivm WHERE rowid = (SELECT max(rowid) FROM model__ivm)")
        return super().compare(facade, versions)


class OtherQuery(DuckEngine):
    """The query is not the one that the model keeps."""

    def __init__(self, duck: Duck, history: History, model: Model) -> None:
        super().__init__(duck, history, model)
        self.model = model_of(PLAIN.replace("> 3", ">= 0"), history.tables)
        self.query = self.model.original


def test_a_wrong_model_is_found(tables: dict[str, TableData]) -> None:
    lost, other = check(PLAIN, tables, LosesARow), check(PLAIN, tables, OtherQuery)
    assert lost.verdict == WRONG and lost.detail.startswith("after round 2, missing: (")
    assert other.verdict == WRONG and other.detail.startswith("after the build, missing: (")


def test_a_full_refresh_does_not_pass(tables: dict[str, TableData]) -> None:
    found = check(PLAIN, tables, refresh="full")
    assert (found.verdict, found.detail) == (WRONG, "not incremental, meta.ivm.refresh: full")


def test_the_model_has_no_final_order_and_every_column_a_name_of_its_own(tables: dict[str, TableData]) -> None:
    grouped, plain = model_of(GROUPED, tables), model_of(PLAIN, tables)
    assert grouped.original.named_selects == ["p_town", "c2", "mean"]  # type: ignore[attr-defined]
    assert plain.original.named_selects == ["s_ticket", "p_town", "s_ticket_3"]  # type: ignore[attr-defined]
    assert "ORDER BY" not in grouped.sql and "LIMIT" not in grouped.sql
    assert grouped.tables == ("sales", "shop") and "db.sales AS sales" in grouped.sql
    inner = model_of("select * from (select s_item from sales order by s_price limit 3) t limit 5", tables)
    assert inner.sql.count("LIMIT") == 1 and "ORDER BY" in inner.sql


def test_a_history_is_the_same_for_a_seed_and_its_feed_leads_from_version_to_version(
    tables: dict[str, TableData],
) -> None:
    def rows(relation: str) -> Counter[tuple[object, ...]]:
        return Counter(duck.rows(f"SELECT * FROM {relation}"))

    seen = []
    for seed, dense in ((1, False), (1, False), (2, False), (2, True)):
        duck = Duck()
        history = History(duck.connection, tables, seed, dense=dense)
        history.load()
        assert [history.change(number) for number in (1, 2)] == [2, 4]
        seen.append(rows("sales__v4"))
        for name, version in ((n, v) for n in tables for v in (1, 2, 3, 4)):
            listed = ", ".join(tables[name].columns)
            feed = f"(SELECT {listed} FROM {name}__changes WHERE _commit_version = {version} AND _change_type IN"
            gone, came = rows(f"{feed} ('delete', 'update_preimage'))"), rows(f"{feed} ('insert', 'update_postimage'))")
            assert gone + came, (name, version)
            assert rows(f"{name}__v{version - 1}") - gone + came == rows(f"{name}__v{version}")
            key = ", ".join(tables[name].keys.primary_key)
            assert not duck.rows(f"SELECT {key} FROM {name}__v{version} GROUP BY {key} HAVING count(*) > 1")
        kinds = {kind for (kind,) in duck.rows("SELECT DISTINCT _change_type FROM sales__changes")}
        assert kinds == {"insert", "delete", "update_preimage", "update_postimage"}
    assert seen[0] == seen[1] != seen[2] != seen[3]


def test_rows_are_steered_to_constants_but_not_where_a_subquery_must_find_one_row(tables: dict[str, TableData]) -> None:
    query = "select 1 from sales, shop where s_price in (1, 2 + 1) and 5 = s_shop and s_item = s_ticket and substr(p_town, 1) = 'x'"
    columns = {c for t in tables.values() for c in t.columns}
    wanted = wanted_values([model_of(query, tables).original], columns)
    assert wanted == {"s_price": ("1", "2 + 1"), "s_shop": ("5",), "p_town": ("'x'",)}
    single = model_of("select 1 from sales where s_shop = (select p_shop from shop where p_town = 'x')", tables)
    assert wanted_values([single.original], columns) == {}
    assert settled_columns(single.original) == {"p_shop", "p_town"}
    assert not settled_columns(model_of("select (select max(p_shop) from shop) as top", tables).original)


def test_rows_that_differ_in_the_last_digits_only_are_the_same() -> None:
    assert unmatched([("a", 1 / 3), ("a", None)], [("a", None), ("a", 0.333333333)]) == ""
    assert unmatched([("a", 1.5)], [("a", 1.6)]) == "too many: ('a', 1.5)"
    assert unmatched([], [("a", None)]) == "missing: ('a', None)"


def test_work_that_takes_too_long_or_fails_is_an_error() -> None:
    def fails() -> Checked:
        raise ValueError("no\nsuch thing")

    def sleeps() -> Checked:
        time.sleep(60)
        return Checked(EQUAL)

    def works() -> Checked:
        while True:
            pass

    assert within(10, lambda: Checked(EQUAL, rows=(1,))) == Checked(EQUAL, rows=(1,))
    assert within(10, fails).detail.endswith("no such thing")
    assert within(0.01, sleeps) == Checked(ERROR, "timeout after 0.01 s")
    assert within(1, works) == Checked(ERROR, "timeout after 1 s")
    assert failure(ValueError("x")).verdict == ERROR


def test_the_page_has_strategies_rules_results_and_totals_but_neither_clauses_nor_rows(
    tables: dict[str, TableData],
) -> None:
    declared = declare(tables.values(), SCHEMA, foreign_keys=False)
    model = model_of(GROUPED, tables)
    kept = plan_model(model.sql, declared)
    refused = plan_model(f"select * from ({model.sql}) limit 5", declared)
    assert (kept.strategy, dict(kept.operators)["Join"]) == ("incremental", "algebraic")
    assert (refused.strategy, refused.operators) == ("full", ()) and "LIMIT" in refused.reason
    page = page_text(
        [
            record("duckdb", "h01", kept, Checked(EQUAL, rows=(2, 3), moved=1)),
            record("spark", "h01", kept, Checked(WRONG, "after round 1, missing: ('secret', 1)", (2, 3), 1)),
            record("duckdb", "h02", refused, Checked()),
            record("duckdb", "h03", kept, Checked(EQUAL, rows=(0, 0))),
            record("duckdb", "ds03", Planned("error"), Checked(ERROR, "ValueError (x.py:1): secret")),
        ]
    )
    assert "| TPC-H | 3 | 2 | 1 | 1 equal; 1 equal, not moved | 1 WRONG |" in page
    assert "none did for h03" in page
    assert "| h01 | incremental | " in page and "| equal | WRONG: after round 1 | 2 → 3 | 1 |" in page
    assert f"| h02 | full: {refused.reason} |" in page and f"| {refused.reason} | 1 |" in page
    assert "error: ValueError (x.py" in page and "secret" not in page

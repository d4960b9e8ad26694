"""Random views over all supported constructs, random histories: as test_histories, with views of all_sql.

DBT_IVM_ALL_SQL=50000 pytest -n 2 tests/property/test_all_sql.py        more histories (default 5,000)
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import strategies as st

from tests.property.all_sql import AllSql
from tests.property.sources import OPERATIONS, Source, operations_on, rows_of, sources
from tests.property.test_histories import SHARDS, History, check_refreshes, sampled

HISTORIES = int(os.environ.get("DBT_IVM_ALL_SQL", "5000"))


@st.composite
def all_sql_histories(draw: Any, qualify: bool = True) -> History:
    """``qualify``: open-source Spark has no QUALIFY."""
    tables: list[Source] = draw(sources())
    sql = AllSql(draw, tables, qualify=qualify).view()
    initial = [draw(st.lists(rows_of(t), max_size=6)) for t in tables]
    used = [i for i, t in enumerate(tables) if f"db.{t.name} " in sql]
    batches = []
    for _ in range(draw(st.sampled_from([1, 1, 1, 2]))):
        kinds = draw(st.sampled_from([OPERATIONS, OPERATIONS, ("insert",)]))
        touched = draw(st.one_of(st.just(used), st.lists(st.sampled_from(used), max_size=3))) if used else []
        batches.append([(number, draw(operations_on(tables[number], kinds))) for number in touched])
    apply = draw(st.sampled_from(["log", "merge"]))
    rules_on, looks, fetches = (draw(st.booleans()) for _ in range(3))
    return History(tables, sql, initial, batches, rules_on, apply, frozenset(), looks, fetches=fetches)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_refresh_equals_the_query(shard: int) -> None:
    sampled(check_refreshes, all_sql_histories(), HISTORIES, shard)

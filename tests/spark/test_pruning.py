"""A merge into a large table looks at the change first and skips files: those it skips may even be unreadable."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dbt_ivm.refresh import choose
from tests.spark.project import Project
from tests.spark.test_protocol import nothing, watched

MERGE = {"ivm": {"apply": "merge"}}


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table counts as large."""
    monkeypatch.setattr(choose, "LOOK_FROM_ROWS", 0)


def sales(project: Project, key: bool = True) -> None:
    columns = [{"name": "id", "constraints": [{"type": "primary_key"}]}] if key else []
    rows = ", ".join(f"({i}, {i % 4}, date'2024-01-0{1 + i % 4}', {i}.5, 'n{i}')" for i in range(8))
    project.source("sale", "id bigint, shop int, day date, price decimal(9,2), note string", rows, columns=columns)


@contextmanager
def unreadable(project: Project, folder: str) -> Iterator[None]:
    """The files of one partition of the storage table are not there."""
    (where,) = {row.location for row in project.sql(f"describe detail {project.schema}.m__ivm")}
    place = Path(where.removeprefix("file:")) / "__ivm_part=0" / folder
    away = place.with_name("away")
    shutil.move(place, away)
    try:
        yield
    finally:
        shutil.move(away, place)


@pytest.mark.usefixtures("looking")
@pytest.mark.parametrize(
    ("query", "way"),
    [
        ("select id, shop, day, price, note from {{ source('raw','sale') }}", "merge by key"),
        ("select shop, day, price, note from {{ source('raw','sale') }}", "merge by row"),
        ("select day, shop, sum(price) as s, max(note) as n from {{ source('raw','sale') }} group by 1, 2", "merge by group"),
        ("select day, count(distinct note) as n from {{ source('raw','sale') }} group by 1", "merge recomputed groups"),
    ],
)  # fmt: skip
def test_files_of_other_partitions_are_not_read(project: Project, query: str, way: str) -> None:
    sales(project, key="by row" not in way)
    project.model("m", query, meta=MERGE, partition_by=["day"])
    project.run()
    s = project.schema
    project.sql(f"update {s}.sale set note = 'new', price = 1 where id = 1")
    project.sql(f"delete from {s}.sale where id = 5")
    project.sql(f"insert into {s}.sale values (100, 1, date'2024-01-02', 3.25, null)")
    with unreadable(project, "day=2024-01-03"), watched(nothing) as seen:
        result = project.run()["m"]
    assert (result["strategy"], result["way"]) == ("incremental", way)
    project.assert_equal("m")
    kept = [sql for sql in seen if sql.startswith("CACHE TABLE")]
    (merge,) = (sql for sql in seen if sql.startswith("MERGE"))
    assert len(kept) == 1 and "t.`day` IN (CAST('2024-01-02' AS DATE))" in merge
    assert "TABLE_CHANGES" not in merge.split("VERSION AS OF")[0], "the change is computed once"
    assert not [row for row in project.sql("show views") if "staged" in row.viewName]

    # a row that moves between partitions is found where it was
    project.sql(f"update {s}.sale set day = date'2024-01-04' where id = 1")
    assert project.run()["m"]["strategy"] == "incremental"
    project.assert_equal("m")


@pytest.mark.usefixtures("looking")
def test_a_change_of_null_keys_and_one_that_nets_to_nothing(project: Project) -> None:
    sales(project)
    project.model("m", "select id, note from {{ source('raw','sale') }}", meta=MERGE)
    project.run()
    s = project.schema
    project.sql(f"insert into {s}.sale values (null, 1, null, null, 'it''s'), (-7, 1, null, null, 'e')")
    project.sql(f"update {s}.sale set note = 'x' where id = 3")
    assert project.run()["m"]["way"] == "merge by key"
    project.assert_equal("m")
    project.sql(f"update {s}.sale set note = 'y' where id is null or id < 0")
    project.sql(f"update {s}.sale set price = 9")  # a column the view does not read
    result = project.run()["m"]
    assert (result["strategy"], result["rows"]) == ("incremental", {"inserted": 0, "updated": 2, "deleted": 0})
    project.assert_equal("m")
    project.sql(f"update {s}.sale set price = 8")
    assert project.run()["m"]["rows"] == {"inserted": 0, "updated": 0, "deleted": 0}
    project.assert_equal("m")


@pytest.mark.usefixtures("looking")
def test_an_engine_that_keeps_nothing_merges_without_a_look(project: Project) -> None:
    from dbt_ivm.bridge.engine import EngineError

    sales(project)
    project.model("m", "select id, note from {{ source('raw','sale') }}", meta=MERGE)
    project.run()
    project.sql(f"update {project.schema}.sale set note = 'x' where id = 3")

    def refuse(number: int, sql: str, when: str) -> None:
        if sql.startswith("CACHE TABLE"):
            raise EngineError("[UNSUPPORTED_FEATURE] CACHE TABLE")

    with watched(refuse):
        result = project.run()["m"]
    assert (result["strategy"], result["way"]) == ("incremental", "merge by key")
    project.assert_equal("m")

"""Small changes travel as texts in a statement: every value arrives as it was, and what cannot travel is kept instead."""

from __future__ import annotations

import pytest

from tests.spark.project import Project

COLUMNS = {
    "t": ("tinyint", ["-128", "null", "7"]),
    "b": ("boolean", ["true", "false", "null"]),
    "i": ("bigint", ["9223372036854775807", "-9223372036854775808", "null"]),
    "d": ("decimal(38,18)", ["12345678901234567890.123456789012345678", "-0.000000000000000001", "null"]),
    "f": ("float", ["cast('0.1' as float)", "cast('NaN' as float)", "cast('-Infinity' as float)"]),
    "x": ("double", ["1e-310", "0.1D + 0.2D", "cast('-0.0' as double)"]),
    "day": ("date", ["date'0001-01-01'", "date'9999-12-31'", "null"]),
    # the hour that comes twice, and microseconds
    "at": ("timestamp", ["timestamp'2024-11-03T05:30:00.000001Z'", "timestamp'2024-11-03T06:30:00Z'", "null"]),
    "local": ("timestamp_ntz", ["timestamp_ntz'2024-03-10 02:30:00.123456'", "timestamp_ntz'1500-01-01 00:00:00'", "null"]),
    "s": ("string", [r"'it\'s a \"quote\" \\ back\\\\slash \\n no newline'", "'line\nbreak\ttab {{ x }} $' || '{y} é 🚀 ;--'", "''"]),
}  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_values_arrive_as_they_were(project: Project, zone: str) -> None:
    p, s = project, project.schema
    key = [{"name": "id", "constraints": [{"type": "primary_key"}]}]
    p.sql(f"set spark.sql.session.timeZone = {zone}")
    try:
        p.source("facts", "id int, " + ", ".join(f"{n} {t}" for n, (t, _) in COLUMNS.items()), columns=key)
        p.source("names", "id int, label string", "(1,'one'),(2,'two')", columns=key)
        shown = ", ".join(f"f.{n}" for n in COLUMNS)
        p.model("joined", f"select f.id, n.label, {shown} from {{{{ source('raw','facts') }}}} f "
                          "join {{ source('raw','names') }} n on f.id = n.id")  # fmt: skip
        p.run()
        for row in range(3):
            values = ", ".join(v[row] for _, v in COLUMNS.values())
            p.sql(f"insert into {s}.facts select {row + 1}, {values}")
        p.sql(f"insert into {s}.names values (3,'three')")
        p.sql(f"update {s}.names set label = 'two!' where id = 2")
        result = p.run()["joined"]
        assert result["strategy"] == "incremental" and result["statements"] == 8, "one statement fetches both changes"
        assert len(p.rows("joined")) == 3
        p.assert_equal("joined")
        p.sql(f"delete from {s}.facts where id = 2")
        p.sql(f"update {s}.facts set t = 1 where id = 3")
        p.sql(f"update {s}.names set label = 'ONE' where id = 1")
        result = p.run()["joined"]
        assert result["rows"] == {"inserted": 0, "updated": 2, "deleted": 1} and result["statements"] == 8
        p.assert_equal("joined")
    finally:
        p.sql("set spark.sql.session.timeZone = UTC")


def test_other_types_are_kept_and_nothing_is_nothing(project: Project) -> None:
    p, s = project, project.schema
    p.source("facts", "id int, tags array<string>, note string", "(1, array('a'), 'x')")
    p.source("names", "id int, label string", "(1,'one')")
    p.model("joined", "select f.id, f.tags, n.label from {{ source('raw','facts') }} f "
                      "join {{ source('raw','names') }} n on f.id = n.id")  # fmt: skip
    p.run()
    p.sql(f"insert into {s}.facts values (1, array('b', null), 'y')")
    p.sql(f"insert into {s}.names values (1,'uno')")
    assert p.run()["joined"]["strategy"] == "incremental"
    assert len(p.rows("joined")) == 4
    # changes that net to nothing in what the view uses: the state moves on, no row is written
    p.sql(f"update {s}.facts set note = 'z'")
    p.sql(f"insert into {s}.names values (2,'gone')")
    p.sql(f"delete from {s}.names where id = 2")
    result = p.run()["joined"]
    assert result["strategy"] == "incremental" and result["rows"] == {"inserted": 0, "updated": 0, "deleted": 0}
    assert p.run()["joined"]["strategy"] == "none"

"""Every type that Delta stores, through real dbt on real Delta: as payload, as a key of groups, as an extremum, inside
expressions; changes that SQL's equality does not see (the sign of zero) or that touch one entry of a map.

Each line of docs/types.md is tested here; ``USES`` says by which model.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.project import Project

DATA, PARENT, PLAIN = "{{ source('raw','data') }}", "{{ source('raw','parent') }}", "{{ source('raw','plain') }}"

#: Columns of the tables, and three values of each: two that are alike, and another.
TYPES: dict[str, tuple[str, str, str, str]] = {
    "flag": ("boolean", "true", "false", "null"),
    "tiny": ("tinyint", "cast(-128 as tinyint)", "cast(127 as tinyint)", "null"),
    "small": ("smallint", "cast(-32768 as smallint)", "cast(32767 as smallint)", "null"),
    "n": ("int", "-2147483648", "2147483647", "null"),
    "big": ("bigint", "cast('-9223372036854775808' as bigint)", "9223372036854775807", "null"),
    "f": ("float", "float('-0.0')", "float(0)", "float('NaN')"),
    "d": ("double", "double('-0.0')", "double(0)", "double('NaN')"),
    "dec": ("decimal(38,10)", "-1234567890123456789012345678.0123456789", "0.0000000001", "null"),
    "frac": ("decimal(38,38)", "cast('0.00000000000000000000000000000000000001' as decimal(38,38))", "0", "null"),
    "s": ("string", "'it''s \\\\ ${spark.app.name} \\n'", "'${nothing}'", "'\\u00e4 '"),
    "ch": ("char(5)", "'a'", "'abcde'", "null"),
    "vc": ("varchar(7)", "'a'", "'a  '", "null"),
    "bin": ("binary", "x''", "x'00ff'", "null"),
    "day": ("date", "date'0001-01-01'", "date'9999-12-31'", "null"),
    "ts": ("timestamp", "timestamp'2024-11-03 05:30:00 UTC'", "timestamp'2024-11-03 06:30:00 UTC'", "null"),
    "tn": ("timestamp_ntz", "timestamp_ntz'2024-03-10 02:30:00'", "timestamp_ntz'0001-01-01 00:00:00.000001'", "null"),
    "arr": ("array<double>", "array(double('-0.0'), null)", "array(0d, null)", "array(double('NaN'))"),
    "st": ("struct<a:double,b:struct<c:string>>", "named_struct('a', double('-0.0'), 'b', named_struct('c', 'x'))",
           "named_struct('a', 0d, 'b', named_struct('c', 'x'))", "named_struct('a', null, 'b', null)"),
    "m": ("map<string,double>", "map('a', double('-0.0'), 'b', 1d)", "map('b', 1d, 'a', 0d)", "map('a', double('NaN'))"),
    "mm": ("map<int,map<string,array<float>>>", "map(1, map('x', array(float('-0.0'))), 2, null)",
           "map(1, map('x', array(float(0))), 2, null)", "map()"),
    "am": ("array<map<string,int>>", "array(map('a', 1, 'b', 2), null)", "array(map('a', 1, 'b', 3), null)", "array()"),
    "sm": ("struct<m:map<string,int>,x:int>", "named_struct('m', map('a', 1), 'x', null)",
           "named_struct('m', map('a', 2), 'x', null)", "named_struct('m', null, 'x', null)"),
    "v": ("variant", "parse_json('{\"a\": 1, \"b\": [true, \"x\"]}')", "parse_json('{\"a\": 2, \"b\": [true, \"x\"]}')",
          "parse_json('null')"),
}  # fmt: skip
HAS_MAP = ("m", "mm", "am", "sm", "v")
PLAIN_TYPES = [c for c in TYPES if c not in HAS_MAP]
EVERY = ", ".join(f"x.{c}" for c in TYPES)

#: name -> (query, way of the mixed refresh)
MODELS: dict[str, tuple[str, str]] = {
    "keyed": (f"select x.id, p.label, {EVERY} from {DATA} x join {PARENT} p on x.parent = p.id", "merge by key"),
    "bag": (f"select {EVERY} from {PLAIN} x", "merge by row"),
    "outer_join": (f"select p.id, {EVERY} from {PARENT} p left join {DATA} x on x.id = p.id + 1", "merge by key"),
    "union_all": (
        f"select id, {EVERY} from {DATA} x union all select cast(null as bigint), {EVERY} from {PLAIN} x",
        "merge by row",
    ),
    "different": (f"select distinct {', '.join(PLAIN_TYPES)} from {PLAIN}", "merge by group"),
    "extremes": (
        "select parent, "
        + ", ".join(f"min({c}) as min_{c}, max({c}) as max_{c}" for c in PLAIN_TYPES if c not in ("f", "d", "arr", "st"))
        + f" from {DATA} group by parent",
        "merge by group",
    ),
    "lists": (
        "select parent, collect_list(m) as ms, first(mm) as mm, max_by(sm, id) as sm, min_by(v, id) as v,"
        f" count(m) as n, sort_array(collect_list(cast(d as string))) as ds from {DATA} group by parent",
        "merge recomputed groups",
    ),
    "first_rows": (
        f"select * from (select x.*, row_number() over (partition by ch order by tiny) as place from {PLAIN} x)"
        " where place = 1",
        "merge by key",
    ),
    "expressions": (
        "select id, cast(d as string) as d_text, cast(arr as string) as arr_text, m['a'] as a, element_at(m, 'b') as b,"
        " sort_array(map_keys(m)) as ks, size(m) as n, map_filter(m, (k, w) -> w > 0) as some, sm.m as inside, am[0] as am0,"
        " variant_get(v, '$.b[1]', 'string') as vb, ch = 'a' as is_a, ch in ('b', 'a') as is_ab, concat('[', ch, ']') as bare,"
        " length(vc) as len, cast(tn as timestamp) as as_ts, cast(ts as timestamp_ntz) as as_ntz, hour(ts) as h,"
        " ts + interval '1' day as next_day, ts - interval '1' month as before, ts > tn as later, dec * 2 as twice,"
        " datediff(day, date'2024-01-01') as days, cast(ts as date) as on_day, round(d, 1) as rounded, hex(bin) as hexed"
        f" from {DATA} where id < 100",
        "merge by key",
    ),
    "padded": (f"select x.id, p.label from {DATA} x join {PARENT} p on x.ch = p.code where p.code = 'a'", "merge by key"),
    "waited": (
        f"select parent, cast(max(ts - timestamp'2024-01-01 00:00:00') as string) as longest from {DATA} group by parent",
        "merge by key",
    ),
    "by_each": (
        f"select {', '.join(PLAIN_TYPES)}, grouping_id() as which, count(*) as c from {PLAIN} group by grouping sets"
        f" ({', '.join(f'({c})' for c in PLAIN_TYPES)})",
        "merge by group",
    ),
    "with_maps": (f"select m, sm, count(*) as n from {PLAIN} group by m, sm", "merge by group"),
}
for logged in ("keyed", "extremes", "lists", "expressions"):  # the same views with tombstones
    MODELS[f"logged_{logged}"] = (MODELS[logged][0], MODELS[logged][1].replace("merge", "log"))
for column in ("d", "ch", "st"):
    MODELS[f"by_{column}"] = (f"select {column}, count(*) as c from {PLAIN} group by {column}", "merge by group")


def values(choice: dict[str, int] | int) -> str:
    chosen = dict.fromkeys(TYPES, choice) if isinstance(choice, int) else choice
    return ", ".join(f"cast({TYPES[c][1 + chosen[c]]} as {TYPES[c][0]})" for c in TYPES)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(Path(tmp_path_factory.mktemp("types")))
    zone = project.spark.conf.get("spark.sql.session.timeZone")
    project.spark.conf.set("spark.sql.session.timeZone", "America/New_York")  # an hour that comes twice, one that is missing
    key = [{"name": "id", "constraints": [{"type": "primary_key"}]}]
    listed = ", ".join(f"{c} {t}" for c, (t, *_) in TYPES.items())
    project.source("data", f"id bigint, parent int, {listed}", columns=key)
    project.source("parent", "id int, label string, code char(7)", "(1,'one','a'),(2,'two','abcde'),(3,null,null)", columns=key)
    project.source("plain", listed)
    s = project.schema
    project.sql(f"insert into {s}.data select 1, 1, {values(0)} union all select 2, 1, {values(1)} union all"
                f" select 3, 2, {values(2)} union all select 4, 2, {values(0)}")  # fmt: skip
    project.sql(f"insert into {s}.data (id, parent) values (5, 3)")
    project.sql(f"insert into {s}.plain select {values(0)} union all select {values(0)} union all select {values(1)}"
                f" union all select {values(2)} union all select {values(2)}")  # fmt: skip
    for name, (query, _) in MODELS.items():
        apply = "log" if name.startswith("logged_") else "auto"
        project.model(name, query, meta={"ivm": {"apply": apply, "refresh": "strict"}})
    yield project
    project.spark.conf.set("spark.sql.session.timeZone", zone)


def plain(value: Any) -> Any:
    """A value as Python compares it exactly: maps by their entries."""
    if isinstance(value, dict):
        return ("map", sorted(((plain(k), plain(v)) for k, v in value.items()), key=repr))
    if isinstance(value, (tuple, list)):
        return tuple(plain(v) for v in value)
    if type(value).__name__ == "VariantVal":
        return json.dumps(json.loads(value.toJson()), sort_keys=True)
    return repr(value)


def same_rows(shop: Project, name: str) -> None:
    expected = Counter(repr(plain(tuple(r))) for r in shop.sql(shop.compiled(name)))
    found = Counter(repr(plain(tuple(r))) for r in shop.sql(f"select * from {shop.schema}.{name}"))
    missing, extra = expected - found, found - expected
    assert not missing and not extra, f"{name}:\n  missing {list(missing)[:5]}\n  extra   {list(extra)[:5]}"


def check(shop: Project, results: dict[str, dict[str, Any]]) -> None:
    for name in MODELS:
        same_rows(shop, name)


def test_first_build(shop: Project) -> None:
    results = shop.run()
    assert {n: r["strategy"] for n, r in results.items()} == dict.fromkeys(MODELS, "create")
    check(shop, results)


def test_changes_that_equality_does_not_see(shop: Project) -> None:
    """One entry of a map, the sign of zero, NaN to NULL, one of two equal rows."""
    s = shop.schema
    for column, (kind, first, second, third) in TYPES.items():
        shop.sql(f"update {s}.data set {column} = cast({second} as {kind}) where id = 1")
        shop.sql(f"update {s}.data set {column} = cast({first} as {kind}) where id = 2")
        shop.sql(f"update {s}.data set {column} = null where id = 3")
        shop.sql(f"update {s}.data set {column} = cast({third} as {kind}) where id = 5")
    shop.sql(f"delete from {s}.plain where d = 0 and cast(d as string) = '-0.0'")
    shop.sql(f"insert into {s}.plain select {values(0)} union all select {values(1)}")
    results = shop.run()
    assert {n: (results[n]["strategy"], results[n]["way"]) for n in MODELS} == {
        n: ("incremental", way) for n, (_, way) in MODELS.items()
    }
    check(shop, results)

"""Every type that Delta stores, through real dbt on real Delta: as payload, as a key of groups, as an extremum, inside
expressions; changes that SQL's equality does not see (the sign of zero) or that touch one entry of a map.

Each line of docs/types.md is tested here.

DBT_IVM_SPARK_EVERY_MODEL=1 pytest tests/spark/test_column_types.py       all of MODELS, and random changes
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.spark.project import Project

ROUNDS = int(os.environ.get("DBT_IVM_TYPE_ROUNDS", "2"))

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
        + ", ".join(
            f"min({c}) as min_{c}, max({c}) as max_{c}" for c in PLAIN_TYPES if c not in ("f", "d", "arr", "st")
        )
        + f" from {DATA} group by parent",
        "merge by group",
    ),
    "lists": (
        "select parent, max_by(sm, id) as sm, min_by(v, id) as v, cast(sort_array(flatten("
        "transform(collect_list(m), w -> transform(map_values(w), y -> cast(y as string))))) as array<string>) as ms,"
        f" count(m) as n, sort_array(collect_list(cast(d as string))) as ds from {DATA} group by parent",
        "merge recomputed groups",
    ),
    "first_rows": (
        f"select * from (select x.*, row_number() over (partition by ch order by id) as place from {DATA} x)"
        " where place = 1",
        "merge by key",
    ),
    "expressions": (
        "select id, cast(d as string) as d_text, cast(arr as string) as arr_text, m['a'] as a, element_at(m, 'b') as b,"
        " sort_array(map_keys(m)) as ks, size(m) as n, map_filter(m, (k, w) -> w > 0) as some, sm.m as inside, am[0] as am0,"
        " variant_get(v, '$.b[1]', 'string') as vb, ch = 'a' as is_a, ch in ('b', 'a') as is_ab, concat('[', ch, ']') as bare,"
        " length(vc) as len, cast(cast(tn as timestamp) as string) as as_ts, cast(cast(ts as timestamp_ntz) as string) as as_ntz, hour(ts) as h,"
        " cast(ts + interval '1' day as string) as next_day, cast(ts - interval '1' month as string) as before, ts > tn as later, dec * 2 as twice,"
        " datediff(day, date'2024-01-01') as days, cast(ts as date) as on_day, round(d, 1) as rounded, hex(bin) as hexed"
        f" from {DATA} where id < 100",
        "merge by key",
    ),
    "padded": (
        f"select x.id, p.label from {DATA} x join {PARENT} p on x.ch = p.code where p.code = 'a'",
        "merge by key",
    ),
    "carried": (  # small changes of both tables, as literals
        f"select x.id, x.s, x.ch, x.vc, x.f, x.d, x.dec, x.day, x.ts, x.tn, x.flag, p.label from {DATA} x"
        f" left join {PARENT} p on x.parent = p.id where x.ch <> 'b' or x.s like '%a%' or p.code in ('a', 'abcde')",
        "merge by key",
    ),
    "wide": (  # longer than DESCRIBE shows
        "select id, named_struct('Key', id, " + ", ".join(f"'f{i}', tiny" for i in range(30)) + ", 'last', m) as w"
        f" from {DATA}",
        "merge by key",
    ),
    "read_wide": ("select id, w, w.last['a'] as a, w.key as k from {{ ref('wide') }}", "merge by key"),
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
MODELS["by_key"] = ("select * from {{ source('raw','keys') }}", "merge by key")
MODELS["collated"] = (
    f"select lower(cast(k as string)) as k, count(*) as c from (select s collate UTF8_LCASE as k from {DATA}) group by k",
    "merge by row",
)
for logged in ("by_key", "keyed", "extremes", "lists", "expressions"):  # the same views with tombstones
    MODELS[f"logged_{logged}"] = (MODELS[logged][0], MODELS[logged][1].replace("merge", "log"))
for column in ("d", "ch", "st"):
    MODELS[f"by_{column}"] = (f"select {column}, count(*) as c from {PLAIN} group by {column}", "merge by group")
#: The same types in other places.
VARIATIONS = (
    "logged_extremes logged_expressions logged_lists logged_keyed outer_join different wide read_wide waited by_d by_ch"
    " collated"
)
EVERY_MODEL = bool(os.environ.get("DBT_IVM_SPARK_EVERY_MODEL"))
if not EVERY_MODEL:
    MODELS = {name: model for name, model in MODELS.items() if name not in VARIATIONS.split()}
in_full = pytest.mark.skipif(not EVERY_MODEL, reason="minutes: make fuzz-spark")


def values(choice: dict[str, int] | int, columns: Sequence[str] = tuple(TYPES)) -> str:
    chosen = dict.fromkeys(TYPES, choice) if isinstance(choice, int) else choice
    return ", ".join(f"cast({TYPES[c][1 + chosen[c]]} as {TYPES[c][0]})" for c in columns)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(Path(tmp_path_factory.mktemp("types")))
    zone = project.spark.conf.get("spark.sql.session.timeZone")
    project.spark.conf.set(
        "spark.sql.session.timeZone", "America/New_York"
    )  # an hour that comes twice, one that is missing
    key = [{"name": "id", "constraints": [{"type": "primary_key"}]}]
    s = project.schema
    listed = ", ".join(f"{c} {t}" for c, (t, *_) in TYPES.items())
    project.source("data", f"id bigint, parent int, {listed}", columns=key)
    project.source(
        "parent", "id int, label string, code char(7)", "(1,'one','a'),(2,'two','abcde'),(3,null,null)", columns=key
    )
    project.source("plain", listed)
    plain_listed = ", ".join(f"{c} {TYPES[c][0]}" for c in PLAIN_TYPES)
    project.source("keys", f"x int, {plain_listed}", config={"meta": {"ivm": {"primary_key": PLAIN_TYPES}}})
    project.sql(f"insert into {s}.keys select 1, {values(0, PLAIN_TYPES)} union all select 2, {values(2, PLAIN_TYPES)}")
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


def check(shop: Project) -> None:
    wrong = []
    for name in MODELS:
        try:
            same_rows(shop, name)
        except Exception as error:
            wrong.append(f"{name}: {str(error)[:700]}")
    assert not wrong, "\n".join(wrong)


def test_first_build(shop: Project) -> None:
    results = shop.run()
    check(shop)
    assert {n: r.get("strategy") for n, r in results.items()} == dict.fromkeys(MODELS, "create")


def test_changes_that_equality_does_not_see(shop: Project) -> None:
    """One entry of a map, the sign of zero, NaN to NULL, one of two equal rows."""
    s = shop.schema
    for row, value in ((1, 2), (2, 1), (5, 3)):
        every = ", ".join(f"{c} = cast({listed[value]} as {listed[0]})" for c, listed in TYPES.items())
        shop.sql(f"update {s}.data set {every} where id = {row}")
    shop.sql(f"update {s}.data set {', '.join(f'{c} = null' for c in TYPES)} where id = 3")
    shop.sql(f"delete from {s}.plain where cast(d as string) = '-0.0'")
    shop.sql(f"insert into {s}.plain select {values(0)} union all select {values(1)}")
    shop.sql(f"update {s}.keys set f = 0, d = 0, arr = {TYPES['arr'][2]}, st = {TYPES['st'][2]} where x = 1")
    shop.sql(f"insert into {s}.keys select 3, {values(1, PLAIN_TYPES)}")
    shop.sql(f"update {s}.keys set x = 9 where x = 2")
    refreshed(shop)


def refreshed(shop: Project) -> None:
    results = shop.run()
    check(shop)
    assert {n: (results[n].get("strategy"), results[n].get("way")) for n in MODELS} == {
        n: ("incremental", way) for n, (_, way) in MODELS.items()
    }


@in_full
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_changes(shop: Project, seed: int) -> None:
    """Rows of random values come, go, and change in random columns, in every table."""
    chance, s = Random(seed), shop.schema

    def row() -> str:
        return values({c: chance.randrange(3) for c in TYPES})

    ids = range(1, 60)
    new = [i for i in ids if chance.random() < 0.3]
    shop.sql(f"delete from {s}.data where id in ({', '.join(map(str, [*new, 0]))})")
    shop.sql(f"insert into {s}.data " + " union all ".join(f"select {i}, {chance.randrange(4)}, {row()}" for i in new))
    changed = chance.sample(sorted(TYPES), 8)
    every = ", ".join(f"{c} = cast({TYPES[c][1 + chance.randrange(3)]} as {TYPES[c][0]})" for c in changed)
    shop.sql(f"update {s}.data set {every} where id % 3 = {chance.randrange(3)}")
    shop.sql(f"delete from {s}.plain where ch <=> {TYPES['ch'][1 + chance.randrange(3)]} and flag is not null")
    shop.sql(f"insert into {s}.plain " + " union all ".join(f"select {row()}" for _ in range(6)))
    shop.sql(f"update {s}.keys set x = x + 1, day = date'2020-01-0{seed + 1}' where x % 2 = {seed % 2}")
    label, code = chance.choice(["'one'", "'${x}'", "null"]), chance.choice(["'a'", "'abcde'", "null"])
    shop.sql(f"update {s}.parent set label = {label}, code = {code} where id = {chance.randrange(1, 4)}")
    refreshed(shop)


def test_equals_recompute(shop: Project) -> None:
    """Green on such models, red when one entry of a map differs."""
    test = "dbt_ivm.equals_recompute"
    names = ("keyed", "bag", "with_maps", *(["read_wide"] if EVERY_MODEL else []))
    shop.write("models/tests.yml", {"version": 2, "models": [{"name": n, "data_tests": [test]} for n in names]})
    assert {r["status"] for r in shop.dbt("test").values()} == {"pass"}
    s = shop.schema
    for name in ("keyed", "bag", "with_maps"):
        shop.sql(f"update {s}.{name}__ivm set m = map('a', 17d) where __ivm_part = 0 and m is not null")
    if EVERY_MODEL:
        shop.sql(f"update {s}.read_wide__ivm set w.f0 = 99 where __ivm_part = 0")
    assert {r["status"] for r in shop.dbt("test", expect_success=False).values()} == {"fail"}

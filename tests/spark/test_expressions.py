"""Expressions go through the parser and back: on Spark they must keep value and type."""

from __future__ import annotations

from dbt_ivm.api import table
from dbt_ivm.catalog.tables import Catalog
from dbt_ivm.refresh.rewrite import preview
from dbt_ivm.refresh.view import compile_view
from tests.spark.session import spark_session

COLUMNS = {
    "i": "int", "b": "bigint", "d": "decimal(10,2)", "f": "double", "s": "string", "day": "date", "t": "timestamp",
    "ok": "boolean", "arr": "array<int>", "st": "struct<a:int,b:string>", "bin": "binary", "sm": "smallint",
}  # fmt: skip
ROWS = """(1, 10, 1.25, 0.5, 'Ab,c', date'2024-02-29', timestamp'2024-02-29 13:14:15.678', true, array(3,1,2),
  named_struct('a', 1, 'b', 'x'), binary('xyz'), cast(7 as smallint)),
 (-7, 9007199254740993, -0.01, double('NaN'), ' zz ', date'1999-12-31', timestamp'1969-12-31 23:59:59', false, array(),
  named_struct('a', null, 'b', ''), binary(''), cast(-1 as smallint)),
 (null, null, null, null, null, null, null, null, null, null, null, null)"""
EXPRESSIONS = """
i + b | i - 1 | i * d | d * d | d / 3 | i / 2 | i div 2 | i % 3 | -d | d + 1 | 1 - d | f * 2 | abs(i) | sm + i
pmod(i, 3) | i & 3 | i | 4 | i ^ 1 | ~i | shiftleft(i, 2) | power(f, 2) | sqrt(abs(f)) | round(d, 1) | bround(d, 1)
floor(d) | ceil(d) | floor(f) | sign(f) | greatest(i, b) | least(i, 3) | isnan(f) | nanvl(f, 0) | hex(i) | conv('ff', 16, 10)
coalesce(i, 0) | ifnull(s, 'n') | nvl(s, 'n') | nvl2(s, 1, 2) | nullif(i, 1) | if(ok, 'y', 'n') | i is null | i <=> null
case when i > 0 then 'p' when i < 0 then 'n' else 'z' end | case i when 1 then 'one' end | decode(i, 1, 'one', 'other')
upper(s) | lower(s) | trim(s) | ltrim(s) | rtrim(s) | trim(both 'z' from trim(s)) | length(s) | char_length(s)
substring(s, 2, 2) | substr(s, -2) | left(s, 2) | right(s, 2) | s || '-' || s | concat(s, i) | concat_ws('-', s, i, d)
replace(s, 'b', 'x') | translate(s, 'ab', 'xy') | reverse(s) | repeat(s, 2) | lpad(s, 6, '*') | rpad(s, 6, '*') | initcap(s)
instr(s, 'c') | locate('c', s) | position('c' in s) | split(s, ',') | split(s, ',')[0] | split_part(s, ',', 2) | ascii(s)
s like '%b%' | s not like 'A_%' | s rlike '^[A-Z]' | regexp_extract(s, '([a-z]+)', 1) | regexp_replace(s, '[a-z]', '#')
s in ('Ab,c', 'x') | i between 0 and 5 | not ok | ok and i > 0 | ok or i < 0 | startswith(s, 'A') | contains(s, 'b')
md5(s) | sha2(s, 256) | crc32(s) | hash(i, s) | xxhash64(i, s) | base64(bin) | hex(bin) | unhex('41') | format_number(f, 2)
year(day) | month(day) | day(day) | quarter(day) | dayofweek(day) | weekofyear(day) | dayofyear(day) | last_day(day)
date_add(day, 3) | date_sub(day, i) | day + 1 | datediff(day, date'2024-01-01') | add_months(day, 1) | months_between(day, date'2020-01-15')
day + interval 1 month | t + interval 2 hours | t - interval '1' day | trunc(day, 'MM') | date_trunc('month', t) | date_trunc('hour', t)
t - interval 2 hours 30 minutes | t - interval 1 day 2 hours 3 minutes | -interval 1 day 2 hours + t | 3 * mod(i, 4)
like(s, 'A%') = ok | ok = rlike(s, 'A') | instr(s, 'b') | space(2) | log10(f) | log2(f) | log(f) | array_size(arr) | unix_date(day)
to_date('2024-03-01', 'yyyy-MM-dd') | to_date('2024-03-01 10:11:12', 'yyyy-MM-dd HH:mm:ss') | to_char(d, '999.99') | date_sub(day, 1)
date_format(t, 'y') | date_format(t, 'E') | to_timestamp('2024-03-01', 'yyyy-MM-dd') | unix_timestamp('2024', 'yyyy') | get_json_object('{"a": 5}', 'a')
date_trunc(if(ok, 'month', 'year'), t) | trunc(day, if(ok, 'MM', 'year')) | from_utc_timestamp(t, 'UTC') | to_utc_timestamp(t, 'UTC')
date_format(t, 'yyyy-MM-dd HH:mm') | to_date('2024-03-01') | to_date('01/02/2024', 'dd/MM/yyyy') | to_timestamp('2024-03-01 10:11:12')
cast(t as date) | cast(day as timestamp) | date(t) | hour(t) | minute(t) | second(t) | unix_timestamp(t) | from_unixtime(0) | extract(month from day)
make_date(2024, 1, i) | cast(s as int) | try_cast(s as int) | cast(i as string) | cast(d as int) | cast(f as decimal(12,3)) | i::string | cast(ok as int)
arr[0] | size(arr) | array_contains(arr, 1) | sort_array(arr) | array_max(arr) | array(i, 2) | element_at(arr, 1) | slice(arr, 1, 2)
transform(arr, x -> x + 1) | filter(arr, x -> x > 1) | exists(arr, x -> x = 2) | aggregate(arr, 0, (acc, x) -> acc + x) | array_join(arr, '-')
st.a | struct(i, s) | named_struct('x', i, 'y', s) | to_json(st) | get_json_object('{"a": 5}', '$.a') | from_json('{"a": 5}', 'a int')
'it''s' | "say ""hi" | 'x""y' | 'x""y\\n''z' | "double" | 1e3 | 1.50 | 10L | 2.5BD | 1Y | date'2024-01-01' | timestamp'2024-01-01 00:00:00' | X'1F' | true | '\\\\d' | null
""".strip()


def test_value_and_type_survive() -> None:
    spark = spark_session()
    spark.sql("create database expressions")
    definition = ", ".join(f"{n} {t}" for n, t in COLUMNS.items())
    spark.sql(f"create table expressions.t ({definition}) using delta")
    spark.sql(f"insert into expressions.t values {ROWS}")
    expressions = [e.strip() for line in EXPRESSIONS.splitlines() for e in line.split(" | ")]
    broken = []
    known = table("expressions.t", COLUMNS)
    version = {known.name: 1}
    selects = [f"{e} as c{n}" for n, e in enumerate(expressions)]
    for start in range(0, len(selects), 30):
        part = selects[start : start + 30]
        sql = f"select i as key_i, {', '.join(part)} from expressions.t"
        view = compile_view(sql, Catalog.of([known]))
        assert view.refusal is None, view.refusal
        wanted, found = spark.sql(sql), spark.sql(preview(view, version))
        rows = {repr(r[0]): [repr(v) for v in r] for r in wanted.collect()}
        others = {repr(r[0]): [repr(v) for v in r] for r in found.collect()}
        for position, select in enumerate(["key", *part]):
            types = wanted.schema.fields[position].dataType, found.schema.fields[position].dataType
            values = {k: (r[position], others[k][position]) for k, r in rows.items()}
            if types[0] != types[1] or any(a != b for a, b in values.values()):
                broken.append((select, types if types[0] != types[1] else values))
    assert not broken, "\n".join(str(b) for b in broken)

"""Spark's types of expressions, decimals above all: a wrong scale would make a sum inexact."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from dbt_ivm.frontend.lower_aggregate import result_type
from dbt_ivm.types import infer, normalise

COLUMNS = {
    "a": "decimal(10,2)",
    "b": "decimal(5,4)",
    "wide": "decimal(38,10)",
    "t": "tinyint",
    "s": "smallint",
    "i": "int",
    "n": "bigint",
    "f": "float",
    "d": "double",
    "text": "string",
    "day": "date",
    "moment": "timestamp",
    "later": "timestamp_ntz",
    "m": "map<string,double>",
    "l": "array<map<string,int>>",
    "raw": "binary",
    "short": "varchar(5)",
    "folded": "string collate utf8_lcase",
    "v": "variant",
}


def parsed(text: str) -> exp.Expr:
    tree = parse_one(text, read="spark")
    assert isinstance(tree, exp.Expr)
    return tree


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # decimal arithmetic, Spark's DecimalPrecision rules
        ("a + b", "decimal(13,4)"),
        ("a - b", "decimal(13,4)"),
        ("a * b", "decimal(16,6)"),
        ("a / b", "decimal(20,8)"),
        ("a + i", "decimal(13,2)"),
        ("a * n", "decimal(31,2)"),
        ("a * 2", "decimal(12,2)"),
        ("a + 0.005", "decimal(12,3)"),
        ("a * (1 - b)", "decimal(17,6)"),
        ("-a", "decimal(10,2)"),
        ("abs(a)", "decimal(10,2)"),
        # 38 digits are the limit: fraction digits are given up, not below six
        ("wide + wide", "decimal(38,9)"),
        ("wide * wide", "decimal(38,6)"),
        ("a * wide", "decimal(38,6)"),
        # integers and floating point
        ("i + i", "int"),
        ("i + n", "bigint"),
        ("t * s", "smallint"),
        ("i / i", "double"),
        ("a + d", "double"),
        ("f + f", "float"),
        ("f + i", "double"),
        ("1.5", "decimal(2,1)"),
        ("0.05", "decimal(2,2)"),
        ("3000000000", "bigint"),
        # choices between values
        ("coalesce(a, b)", "decimal(12,4)"),
        ("coalesce(a, 0.5)", "decimal(10,2)"),
        ("case when i > 1 then a end", "decimal(10,2)"),
        ("case when i > 1 then i else n end", "bigint"),
        ("if(i > 1, a, null)", "decimal(10,2)"),
        ("cast(text as decimal(12, 3))", "decimal(12,3)"),
        ("i > 1 and text is null", "boolean"),
        ("upper(text)", "string"),
        # unknown is always safe
        ("my_function(a)", ""),
        ("text + 1", ""),
        ("coalesce(a, my_function(a))", ""),
        ("case when i > 1 then a else text end", ""),
        ("day", "date"),
        ("missing", ""),
        # what is inside others
        ("m['k']", "double"),
        ("element_at(l, 1)", "map<string,int>"),
        ("l[0]", "map<string,int>"),
        ("map_keys(m)", "array<string>"),
        ("map_values(m)", "array<double>"),
        ("map_from_entries(map_entries(m))", "map<string,double>"),
        ("map_filter(m, (k, v) -> v > 1)", "map<string,double>"),
        ("map('a', i)", "map<string,int>"),
        ("array(i, d)", "array<double>"),
        ("if(i > 1, m, null)", "map<string,double>"),
        ("transform_values(m, (k, v) -> i)", ""),
        ("concat(text, i)", "string"),
        ("concat(raw, raw)", "binary"),
        ("concat(l, l)", "array<map<string,int>>"),
        ("round(d, 2)", "double"),
        ("round(a, 1)", ""),
        ("ceil(d)", "bigint"),
        ("sqrt(i)", "double"),
        ("moment - later", "interval day to second"),
        ("day - day", "interval day"),
        ("variant_get(v, '$.a', 'int')", "int"),
        ("from_json(text, 'map<string,int>')", "map<string,int>"),
        ("from_json(text, 'x INT')", "struct<x:int>"),
        # texts: of bytes and in other collations they are something else
        ("text || '-' || i", "string"),
        ("raw || raw", "binary"),
        ("raw || text", "string"),
        ("lpad(text, 3, '*')", "string"),
        ("rpad(i, 3)", "string"),
        ("lpad(raw, 3)", ""),
        ("left(short, 2)", "string"),
        ("right(raw, 2)", ""),
        ("substr(raw, 1)", ""),
        ("substr(missing, 1)", ""),
        ("substring(folded, 1)", "string collate utf8_lcase"),
        ("upper(raw)", "string"),
        ("upper(folded)", "string collate utf8_lcase"),
        ("reverse(text)", "string"),
        ("reverse(l)", "array<map<string,int>>"),
        ("repeat(text, 2)", "string"),
        ("split(text, ',')[0]", "string"),
        ("split(folded, ',')[0]", ""),
        ("element_at(split(text, ','), 1)", "string"),
        ("split_part(text, ',', 1)", "string"),
        ("regexp_extract(text, '(x)', 1)", "string"),
        ("regexp_replace(text, 'x', 'y')", "string"),
        ("translate(text, 'x', 'y')", "string"),
        ("sha2(text, 256)", "string"),
        ("coalesce(short, 'x')", "string"),
        ("coalesce(folded, 'x')", ""),
        ("case when i > 1 then short end", "string"),
        ("nullif(short, 'x')", "string"),
        ("text rlike 'x'", "boolean"),
        ("greatest(i, n)", "bigint"),
        ("least(text, i)", ""),
        # numbers and days
        ("i % 2", "int"),
        ("n div 2", "bigint"),
        ("1e3", "double"),
        ("-text", "double"),
        ("day + 1", "date"),
        ("datediff(day, day)", "int"),
        ("datediff(hour, moment, moment)", "bigint"),
        ("date_add(day, 1)", "date"),
    ],
)
def test_type_of_expression(expression: str, expected: str) -> None:
    assert infer(parsed(expression), COLUMNS) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("sum(a)", "decimal(20,2)"),
        ("sum(wide)", "decimal(38,10)"),
        ("sum(i)", "bigint"),
        ("sum(d)", "double"),
        ("sum(text)", ""),
        ("avg(a)", "decimal(14,6)"),
        ("avg(wide)", "decimal(38,14)"),
        ("avg(n)", "double"),
        ("count(a)", "bigint"),
        ("count(*)", "bigint"),
        ("min(a)", "decimal(10,2)"),
        ("max(day)", "date"),
    ],
)
def test_type_of_aggregate(call: str, expected: str) -> None:
    assert result_type(parsed(call), COLUMNS) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [("DEC(5)", "decimal(5,0)"), ("numeric( 7 , 3 )", "decimal(7,3)"), ("LONG", "bigint"), ("String", "string")],
)
def test_types_are_normalised(written: str, expected: str) -> None:
    assert normalise(written) == expected

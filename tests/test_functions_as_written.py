"""Functions go through the parser and back without becoming others; tests/spark/test_expressions.py runs some."""

from __future__ import annotations

import re

import pytest

from dbt_ivm.api import table
from dbt_ivm.catalog.tables import Catalog
from dbt_ivm.dialect import SparkFour
from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.builtin_functions import SCALAR_FUNCTIONS
from dbt_ivm.frontend.functions import RECOMPUTABLE_NAMES
from dbt_ivm.frontend.parse import parse
from dbt_ivm.refresh.view import compile_view
from dbt_ivm.types import infer

ARGUMENTS = (
    ("p",), ("p", "q"), ("p", "q", "r"), ("p", "q", "r", "s"), ("p", "1"), ("p", "'x'"), ("'x'", "p"), ("1", "p"),
    ("p", "'y'"), ("p", "'yyyy-MM-dd'"), ("p", "'yyyy-MM-dd HH:mm:ss'"), ("p", "'E %Y D'"), ("'month'", "p"),
    ("p", "'MM'"), ("p", "'$..a'"), ("p", "'a'"), ("p", "0.5", "q"), ("p", "'x'", "2"), ("p", "1", "'x'"),
)  # fmt: skip

#: What Spark takes for the same, as a call.
SYNONYMS: dict[str, str] = {
    "approx_percentile": "percentile_approx",
    "date_diff": "datediff",
    "dateadd": "date_add",
    "position": "locate",
    "reduce": "aggregate",
    "substr": "substring",
    "char": "chr",
    "unix_timestamp": "to_unix_timestamp",
}

#: What Spark takes for the same, as other text of the arguments.
OTHER_TEXT: dict[tuple[str, int], str] = {
    **{(t, 1): f"cast({{}} as {t})" for t in "boolean date double float int string timestamp".split()},
    ("like", 2): "({} like {})",
    ("like", 3): "({} like {} escape {})",
    ("ilike", 2): "({} ilike {})",
    ("ilike", 3): "({} ilike {} escape {})",
    ("rlike", 2): "({} rlike {})",
    ("regexp_like", 2): "({} rlike {})",
    ("mod", 2): "({} % {})",
    ("div", 2): "({} div {})",
    ("and", 2): "({} and {})",
    ("or", 2): "({} or {})",
    ("trim", 2): "trim({} from {})",
    ("ltrim", 2): "trim(leading {} from {})",
    ("rtrim", 2): "trim(trailing {} from {})",
    ("overlay", 3): "overlay({} placing {} from {})",
    ("overlay", 4): "overlay({} placing {} from {} for {})",
    ("str_to_map", 1): "str_to_map({}, ',', ':')",
    ("str_to_map", 2): "str_to_map({}, {}, ':')",
}
#: Calls whose first argument is a name or has a grammar of its own; the tests below have them.
OF_NAMES = frozenset("named_struct struct map extract cast between case when in exists transform interval".split())

#: How many arguments Spark takes at most, and which functions take texts or names in certain places only; calls with
#: others are the user's to fix, and parsers may do with them what they like.
MOST = {
    **dict.fromkeys("and or like ilike mod div rlike regexp_like ltrim rtrim trim".split(), 2),
    **dict.fromkeys("boolean date double float int string timestamp initcap hex last_day parse_json size".split(), 1),
    **dict.fromkeys(
        "array_append array_prepend array_remove array_sort ceil ceiling datediff date_diff element_at extract floor "
        "get_json_object map_from_arrays shiftleft shiftright sort_array to_json transform try_element_at".split(), 2
    ),
    **dict.fromkeys(
        "array_insert locate lpad position regexp_extract regexp_extract_all rpad sequence slice str_to_map "
        "substr".split(), 3
    ),
}  # fmt: skip
LEAST = {
    **dict.fromkeys("and or like ilike date_diff datediff map_from_arrays named_struct substr extract".split(), 2),
    "regexp_replace": 3,
}


def calls() -> list[tuple[str, tuple[str, ...]]]:
    return [
        (name, arguments)
        for name in sorted((SCALAR_FUNCTIONS | RECOMPUTABLE_NAMES) - OF_NAMES)
        for arguments in ARGUMENTS
        if LEAST.get(name, 1) <= len(arguments) <= MOST.get(name, 4)
    ]


def plain(text: str) -> str:
    return re.sub(r"[\s`]+", "", text).lower()


def printed(expression: str) -> str:
    return parse(f"select {expression} as v from t").selects[0].this.sql(dialect=SparkFour)


def test_calls_print_as_they_were_read() -> None:
    broken = []
    for name, arguments in calls():
        listed = ", ".join(arguments)
        wanted = {f"{name}({listed})", f"{SYNONYMS.get(name, name)}({listed})"}
        wanted.add(OTHER_TEXT.get((name, len(arguments)), "").format(*arguments))
        try:
            found = printed(f"{name}({listed})")
        except Refusal:  # not so many arguments
            continue
        if plain(found) not in map(plain, wanted):
            broken.append(f"{name}({listed})  =>  {found}")
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        # several units are one operand
        ("ts - interval 2 hours 30 minutes", "ts - (INTERVAL '2' HOURS + INTERVAL '30' MINUTES)"),
        (
            "ts - interval 1 day 2 hours 3 minutes",
            "ts - (INTERVAL '1' DAY + INTERVAL '2' HOURS + INTERVAL '3' MINUTES)",
        ),
        ("interval 1 day 2 hours * 2", "(INTERVAL '1' DAY + INTERVAL '2' HOURS) * 2"),
        ("-interval 1 day 2 hours", "-(INTERVAL '1' DAY + INTERVAL '2' HOURS)"),
        ("ts - (interval 1 day + interval 2 hours)", "ts - (INTERVAL '1' DAY + INTERVAL '2' HOURS)"),
        ("ts - interval 1 day + interval 2 hours", "ts - INTERVAL '1' DAY + INTERVAL '2' HOURS"),
        # a function is one operand
        ("r = like(p, q)", "r = (p LIKE q)"),
        ("rlike(p, q) = r", "(p RLIKE q) = r"),
        ("like(mod(p, 2), q)", "((p % 2) LIKE q)"),
        ("3 * mod(p, 2)", "3 * (p % 2)"),
        ("collate(p || q, 'UTF8_LCASE')", "COLLATE(p || q, 'UTF8_LCASE')"),
        ("p like q", "p LIKE q"),
        ("p % 2", "p % 2"),
        # names, and functions of users
        ("named_struct('aB', p)", "NAMED_STRUCT('aB', p)"),
        ("map('a', p, 'b', q)", "MAP('a', p, 'b', q)"),
        ("extract(month from p)", "EXTRACT(MONTH FROM p)"),
        ("unix_timestamp()", "UNIX_TIMESTAMP(CURRENT_TIMESTAMP())"),
        ("to_date", "to_date"),
        ("t.to_date", "t.to_date"),
    ],
)
def test_expression_keeps_its_meaning(written: str, expected: str) -> None:
    assert printed(written) == expected
    assert printed(expected) == expected or "CURRENT_TIMESTAMP" in expected


def test_a_table_may_have_the_name_of_a_function() -> None:
    sql = "WITH Log(a) AS (SELECT 1) SELECT instr.b FROM Log JOIN (SELECT 2) AS instr(b) ON TRUE"
    assert parse(sql).sql(dialect=SparkFour) == sql


ROWS = table("db.t", {"id": "int", "g": "int", "a": "int", "f": "int", "s": "string"}, primary_key=["id"])


def test_a_percentile_of_counted_values_is_an_aggregate() -> None:
    view = compile_view("select g, percentile(a, 0.5, f) as v from db.t group by g", Catalog.of([ROWS]))
    assert view.refusal is None and view.plan is not None
    assert "PERCENTILE(t_a, 0.5, t_f)" in view.plan.explain()


@pytest.mark.parametrize("call", ["percentile(distinct a, 0.5)", "try_sum(distinct a)"])
def test_a_filter_on_different_values_is_refused(call: str) -> None:
    sql = f"select g, {call} filter (where f > 1) as v from db.t group by g"
    view = compile_view(sql, Catalog.of([ROWS]))
    assert view.refusal is not None
    assert view.refusal.construct == "aggregate_function"


def test_functions_of_others_are_not_taken_for_spark_s() -> None:
    view = compile_view("select id, truncate(a, 1) as v from db.t", Catalog.of([ROWS]))
    assert view.refusal is not None
    assert view.refusal.construct == "unknown_function"


def test_types_are_known_by_the_written_name() -> None:
    call = parse("select to_date(s, 'yyyy') as v from t").selects[0].this
    assert infer(call, {"s": "string"}) == "date"

"""Bag equality as one query: rows (with multiplicities) of one side that the other does not have.

EXCEPT compares sets and row counts miss swapped rows; grouping both sides by all columns and comparing counts finds
one extra, one missing and one duplicated row.  Values are equal when SQL says so,
maps when their entries are.  With a tolerance, rows are paired
by their other columns and the order of their floating-point ones, and each pair may differ by that relative amount.
"""

from __future__ import annotations

from dbt_ivm import nodes
from dbt_ivm.comparable import form
from dbt_ivm.nested_types import is_cut
from dbt_ivm.types import normalise

FLOATING = ("float", "double")


def bag_difference(
    expected: str,
    actual: str,
    columns: list[tuple[str, str]],
    tolerance: float | None = None,
    where: str | None = None,
) -> str:
    """Text of a query that returns one row per differing row; empty means equal.

    Args:
        expected: the model's query.
        actual: the model's relation.
        columns: names and Spark types.
        tolerance: relative tolerance for float and double columns; None compares exactly.
        where: condition both sides are restricted to.
    """
    condition = f"\nwhere {where}" if where else ""
    sides = (f"(\n{expected}\n) ivm_query{condition}", f"{actual}{condition}")
    floating = [_quoted(n) for n, kind in columns if kind.lower() in FLOATING]
    if tolerance and floating:
        return _paired(sides, columns, floating, tolerance)
    return _counted(sides, columns)


def _counted(sides: tuple[str, str], columns: list[tuple[str, str]]) -> str:
    shown = ", ".join(f"{_comparable(n, kind)} as {_quoted(n)}" for n, kind in columns)
    group = ", ".join(_quoted(n) for n, _ in columns)
    return (
        f"select {group}, sum(ivm_expected) as ivm_expected_copies, sum(ivm_actual) as ivm_actual_copies from (\n"
        f"  select {shown}, 1 as ivm_expected, 0 as ivm_actual from {sides[0]}\n"
        "  union all\n"
        f"  select {shown}, 0 as ivm_expected, 1 as ivm_actual from {sides[1]}\n"
        f") ivm_both group by {group}\nhaving sum(ivm_expected) <> sum(ivm_actual)"
    )


def _paired(sides: tuple[str, str], columns: list[tuple[str, str]], floating: list[str], tolerance: float) -> str:
    others = [(_quoted(n), _comparable(n, kind)) for n, kind in columns if _quoted(n) not in floating]
    shown = ", ".join([*(f"{c} as {q}" for q, c in others), *floating])
    partition = ", ".join(c for _, c in others) or "1"
    number = f"row_number() over (partition by {partition} order by {', '.join(floating)}) as ivm_number"
    keys = " and ".join([*(f"e.{q} <=> a.{q}" for q, _ in others), "e.ivm_number = a.ivm_number"])
    close = " and ".join(
        f"(e.{f} <=> a.{f} or abs(e.{f} - a.{f}) <= {tolerance!r} * greatest(abs(e.{f}), abs(a.{f})))" for f in floating
    )
    every = [_quoted(n) for n, _ in columns]
    result = ", ".join(
        [*(f"e.{q} as {_quoted('expected_' + q.strip('`'))}" for q in every),
         *(f"a.{q} as {_quoted('actual_' + q.strip('`'))}" for q in every)]
    )  # fmt: skip
    return (
        f"select {result} from (\n  select {shown}, {number} from {sides[0]}\n) e full outer join (\n"
        f"  select {shown}, {number} from {sides[1]}\n) a on {keys}\n"
        f"where e.ivm_number is null or a.ivm_number is null or not coalesce({close}, false)"
    )


def _quoted(name: str) -> str:
    return nodes.name(name).sql(dialect="spark")


def _comparable(name: str, kind: str) -> str:
    """What SQL compares of a column; of a type whose text is cut short, its JSON."""
    column, kind = nodes.column(name), normalise(kind)
    if is_cut(kind):
        return f"to_json({_quoted(name)})"
    return form(column, kind, exact=False).sql(dialect="spark")

"""Values that SQL does not compare, or not exactly, as values that it does.

    map<k,v>            its entries, sorted: two maps with the same entries are one value, whatever their order
    variant             its JSON and its schema
    float, double       its text, which tells -0.0 from 0.0 and gives every value, NaN too, once
    collated string     its bytes
    array, struct       the same of what is inside, where something inside needs it

GROUP BY, joins and `<=>` take -0.0 and 0.0 for one value, which other expressions tell apart, and reject most maps and
variants.  Wherever rows are netted, looked for or compared in all columns they are told apart *exactly*, by this form
of their columns; the value itself travels beside it (``delta/weights.py``).  Keys and groups are what SQL says is
equal, so that only maps and variants among them need a form.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.nested_types import element_type, map_types, struct_fields
from dbt_ivm.types import COLLATED, is_floating

VARIANT = "variant"


def comparable(value: exp.Expr, kind: str, exact: bool = True) -> exp.Expr | None:
    """The form of a value; None where the value is its own.

    Args:
        exact: tell apart what SQL takes for equal, too.

    >>> comparable(exp.column("x"), "double").sql("spark")
    'CAST(x AS STRING)'
    >>> comparable(exp.column("m"), "map<string,int>").sql("spark")
    'SORT_ARRAY(MAP_ENTRIES(m))'
    >>> comparable(exp.column("x"), "array<int>"), comparable(exp.column("x"), "array<double>", exact=False)
    (None, None)
    """
    return _form(value, kind, exact, 1)


def form(value: exp.Expr, kind: str, exact: bool = True) -> exp.Expr:
    """What stands for the value in comparisons: its form, or the value."""
    found = comparable(value, kind, exact)
    return value if found is None else found


def is_comparable(kind: str) -> bool:
    """Whether SQL compares and sorts values of this type.

    >>> is_comparable("array<struct<a:int>>"), is_comparable("array<map<string,int>>")
    (True, False)
    """
    return comparable(exp.Null(), kind, exact=False) is None


def same(left: exp.Expr, right: exp.Expr, kind: str, exact: bool = True, nulls: bool = True) -> exp.Expr:
    """Equality of two values of a type, null-safe unless no NULL is to be found."""
    compare = exp.NullSafeEQ if nulls else exp.EQ
    return compare(this=form(left, kind, exact), expression=form(right, kind, exact))


def _form(value: exp.Expr, kind: str, exact: bool, depth: int) -> exp.Expr | None:
    if is_floating(kind):
        return nodes.cast(value, "string") if exact else None
    if COLLATED in kind and kind.startswith("string"):
        return nodes.cast(value, "binary") if exact else None
    if kind == VARIANT:
        return _struct([_call("TO_JSON", value), _call("SCHEMA_OF_VARIANT", value.copy())])
    element = element_type(kind)
    if element:
        return _each(value, lambda item: _form(item, element, exact, depth + 1), depth)
    key_and_value = map_types(kind)
    if key_and_value:
        return _sorted_entries(value, *key_and_value, exact, depth)
    return _fields(value, struct_fields(kind), exact, depth)


def _each(value: exp.Expr, inside: Callable[[exp.Expr], exp.Expr | None], depth: int) -> exp.Expr | None:
    item = exp.to_identifier(names.hidden("item", depth))
    made = inside(item)
    return None if made is None else _call("TRANSFORM", value, exp.Lambda(this=made, expressions=[item.copy()]))


def _sorted_entries(value: exp.Expr, key: str, of_key: str, exact: bool, depth: int) -> exp.Expr:
    """Keys differ, so the order is by key."""
    entries = _call("MAP_ENTRIES", value)

    def entry(item: exp.Expr) -> exp.Expr | None:
        parts = [(_part(item, "key"), key), (_part(item, "value"), of_key)]
        forms = [_form(v, t, exact, depth + 1) for v, t in parts]
        if forms == [None, None]:
            return None
        return _struct([v if f is None else f for (v, _), f in zip(parts, forms, strict=True)])

    return _call("SORT_ARRAY", _each(entries, entry, depth) or entries)


def _fields(value: exp.Expr, fields: tuple[tuple[str, str], ...], exact: bool, depth: int) -> exp.Expr | None:
    """NULL is not a struct of NULLs."""
    parts = [(_part(value, name), kind) for name, kind in fields]
    forms = [_form(v, t, exact, depth) for v, t in parts]
    if not any(f is not None for f in forms):
        return None
    known = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
    made = _struct([v if f is None else f for (v, _), f in zip(parts, forms, strict=True)])
    return exp.Case(ifs=[exp.If(this=known, true=made)])


def _part(value: exp.Expr, name: str) -> exp.Expr:
    return exp.Dot(this=value.copy(), expression=nodes.name(name))


def _struct(values: list[exp.Expr]) -> exp.Expr:
    named = [part for i, v in enumerate(values, 1) for part in (exp.Literal.string(f"c{i}"), v)]
    return _call("NAMED_STRUCT", *named)


def _call(function: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=function, expressions=list(arguments))

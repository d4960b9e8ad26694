"""Spark's type of an expression, as far as maintenance needs it.

The answer is a Spark type string such as ``decimal(12,2)``, or ``""`` when unknown.  Unknown is always safe: an
aggregate over an argument of unknown type is recomputed for the affected groups instead of adjusted.

>>> infer(parse_one("price * (1 - discount)", read="spark"), {"price": "decimal(12,2)", "discount": "decimal(4,2)"})
'decimal(18,4)'
>>> infer(parse_one("my_function(price)", read="spark"), {"price": "decimal(12,2)"})
''
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from dbt_ivm import nodes
from dbt_ivm.function_types import COLLATED, function_type
from dbt_ivm.nested_types import element_type, map_types, struct_fields

INTEGRAL = ("tinyint", "smallint", "int", "bigint")
FLOATING = ("float", "double")
#: Decimal digits that hold every value of an integral type (Spark's DecimalType.forType).
INTEGRAL_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
ALIASES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float"}
TIMES = frozenset(("date", "timestamp", "timestamp_ntz"))
MAX_PRECISION = 38
MIN_ADJUSTED_SCALE = 6

__all__ = ["COLLATED", "common_type", "decimal_of", "infer", "is_floating", "is_integral", "normalise", "parse_one"]


def normalise(type_name: str) -> str:
    """Lower case without spaces around punctuation, aliases resolved.

    >>> normalise("DECIMAL(10, 2)"), normalise("Integer"), normalise("decimal")
    ('decimal(10,2)', 'int', 'decimal(10,0)')
    >>> normalise("struct<First Name: int>")
    'struct<first name:int>'
    """
    text = re.sub(r"\s*([<>(),:])\s*", r"\1", type_name.strip()).lower()
    if text in ("decimal", "numeric", "dec"):
        return "decimal(10,0)"
    text = re.sub(r"^(numeric|dec)\(", "decimal(", text)
    text = re.sub(r"^decimal\((\d+)\)$", r"decimal(\1,0)", text)
    return ALIASES.get(text, text)


def is_integral(type_name: str) -> bool:
    return type_name in INTEGRAL


def is_interval(type_name: str) -> bool:
    return type_name.startswith("interval")


def is_storable(type_name: str) -> bool:
    """Whether Delta stores values of this type.

    >>> is_storable("interval day"), is_storable("string collate utf8_lcase"), is_storable("array<string>")
    (False, False, True)
    """
    return not is_interval(type_name) and COLLATED not in type_name


def is_floating(type_name: str) -> bool:
    return type_name in FLOATING


def decimal_of(type_name: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type; None for any other type.

    >>> decimal_of("decimal(10,2)"), decimal_of("int")
    ((10, 2), None)
    """
    match = re.fullmatch(r"decimal\((\d+),(\d+)\)", type_name)
    return (int(match[1]), int(match[2])) if match else None


def are_comparable(left: str, right: str) -> bool:
    """Whether values of both types can stand in one column and still compare as they do with each other.

    >>> are_comparable("int", "decimal(5,2)"), are_comparable("int", "string"), are_comparable("", "")
    (True, False, False)
    """
    if not left or not right:
        return False
    return left == right or all(is_integral(t) or is_floating(t) or decimal_of(t) for t in (left, right))


def infer(expression: exp.Expr, columns: Mapping[str, str]) -> str:
    """The Spark type (ANSI off) of an expression over typed columns, or ``""``."""
    rule = _RULES.get(type(expression))
    if rule:
        return rule(expression, columns)
    return _function(expression, columns) if isinstance(expression, exp.Func) else ""


def function_names(node: exp.Expr) -> frozenset[str]:
    """Names a call may have in the query, whether the parser has a class for the function or not."""
    if isinstance(node, exp.Anonymous):
        return frozenset((node.name.lower(),))
    return frozenset(n.lower() for n in node.sql_names()) if isinstance(node, exp.Func) else frozenset()


#: Functions whose result has the type that a text says, and which argument that is.
TOLD = {"variant_get": 2, "try_variant_get": 2, "from_json": 1}


def _told(node: exp.Expr, position: int) -> str:
    """A type that stands in the query as a text; columns alone, ``a INT, b STRING``, are those of a struct."""
    arguments = [node.this, node.args.get("expression")] if not isinstance(node, exp.Anonymous) else node.expressions
    told = arguments[position] if position < len(arguments) else None
    if not isinstance(told, exp.Literal) or not told.is_string:
        return ""
    text = normalise(told.name)
    if not text or " " not in text.partition("<")[0]:
        return text
    try:
        return normalise(exp.DataType.build(f"struct<{told.name}>", dialect="spark").sql(dialect="spark"))
    except SqlglotError:
        return ""


def _struct(node: exp.Expr, columns: Mapping[str, str]) -> str:
    pairs = list(zip(node.expressions[::2], node.expressions[1::2], strict=True))
    kinds = [infer(value, columns) for _, value in pairs]
    if not kinds or "" in kinds or not all(isinstance(name, exp.Literal) for name, _ in pairs):
        return ""
    return f"struct<{','.join(f'{name.name.lower()}:{kind}' for (name, _), kind in zip(pairs, kinds, strict=True))}>"


def _function(node: exp.Expr, columns: Mapping[str, str]) -> str:
    if "named_struct" in function_names(node):
        return _struct(node, columns)
    if "collate" in function_names(node):
        return f"string{COLLATED}{node.expressions[1].name.lower()}" if len(node.expressions) == 2 else ""
    for name in function_names(node) & TOLD.keys():
        return _told(node, TOLD[name])
    given = [] if isinstance(node, exp.Anonymous) else [node.this]
    arguments = [a for a in (*given, *node.expressions) if isinstance(a, exp.Expr)]
    return function_type(function_names(node), [infer(a, columns) for a in arguments])


def _column(node: exp.Expr, columns: Mapping[str, str]) -> str:
    return columns.get(nodes.column_name(node), "")  # type: ignore[arg-type]


def _literal(node: exp.Expr, columns: Mapping[str, str]) -> str:
    assert isinstance(node, exp.Literal)
    if node.is_string:
        return "string"
    text = node.name
    if re.fullmatch(r"\d+", text):
        return "int" if int(text) < 2**31 else "bigint" if int(text) < 2**63 else ""
    if re.fullmatch(r"\d*\.\d*", text):
        whole, _, fraction = text.partition(".")
        digits = len((whole + fraction).lstrip("0"))
        return f"decimal({max(digits, len(fraction), 1)},{len(fraction)})"
    return "double" if re.fullmatch(r"(\d+\.?\d*|\.\d+)e[+-]?\d+", text.lower()) else ""


def _inner(node: exp.Expr, columns: Mapping[str, str]) -> str:
    return infer(node.this, columns)


def _number(node: exp.Expr, columns: Mapping[str, str]) -> str:
    kind = _inner(node, columns)
    return "double" if kind == "string" else kind


def _cast(node: exp.Expr, columns: Mapping[str, str]) -> str:
    to = node.args["to"]
    has_parameters = any(value for name, value in to.args.items() if name != "this")
    return _type_text(to) if has_parameters else _simple_type(to.this)


@cache
def _simple_type(kind: exp.DType) -> str:
    return _type_text(exp.DataType(this=kind))


def _type_text(to: exp.DataType) -> str:
    return normalise(to.sql(dialect="spark"))


def _boolean(node: exp.Expr, columns: Mapping[str, str]) -> str:
    return "boolean"


def _as_decimal(node: exp.Expr, type_name: str) -> tuple[int, int] | None:
    if isinstance(node, exp.Literal) and type_name in ("int", "bigint"):
        return len(node.name.lstrip("0")) or 1, 0
    if type_name in INTEGRAL_DIGITS:
        return INTEGRAL_DIGITS[type_name], 0
    return decimal_of(type_name)


def _bounded(precision: int, scale: int) -> str:
    """Spark's adjustPrecisionScale: keep the whole digits, give up fraction digits down to six."""
    if precision <= MAX_PRECISION:
        return f"decimal({precision},{scale})"
    whole = precision - scale
    return f"decimal({MAX_PRECISION},{max(MAX_PRECISION - whole, min(scale, MIN_ADJUSTED_SCALE))})"


def _arithmetic(node: exp.Expr, columns: Mapping[str, str]) -> str:
    left_node, right_node = node.left.unnest(), node.right.unnest()  # type: ignore[attr-defined]
    left, right = infer(left_node, columns), infer(right_node, columns)
    if isinstance(node, exp.Sub) and {left, right} <= TIMES:
        return "interval day" if left == right == "date" else "interval day to second"
    if is_interval(left) and is_interval(right):
        return left if left == right else ""
    if not left or not right or "string" in (left, right):
        return ""
    if isinstance(node, (exp.Add, exp.Sub)) and left == "date" and right in ("tinyint", "smallint", "int"):
        return "date"
    if is_floating(left) or is_floating(right):
        both_small = {left, right} <= {"float", "tinyint", "smallint"}
        numeric = all(is_floating(t) or is_integral(t) or decimal_of(t) for t in (left, right))
        return ("float" if both_small else "double") if numeric else ""
    if decimal_of(left) or decimal_of(right):
        first, second = _as_decimal(left_node, left), _as_decimal(right_node, right)
        return _decimal_result(type(node), first, second) if first and second else ""
    if is_integral(left) and is_integral(right):
        if isinstance(node, exp.Div):
            return "double"
        return max(left, right, key=INTEGRAL.index)
    return ""


def _decimal_result(kind: type, first: tuple[int, int], second: tuple[int, int]) -> str:
    (p1, s1), (p2, s2) = first, second
    if kind in (exp.Add, exp.Sub):
        scale = max(s1, s2)
        return _bounded(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if kind is exp.Mul:
        return _bounded(p1 + p2 + 1, s1 + s2)
    if kind is exp.Div:
        scale = max(MIN_ADJUSTED_SCALE, s1 + p2 + 1)
        return _bounded(p1 - s1 + s2 + scale, scale)
    return ""


def widest(types: list[str]) -> str:
    """The type that Spark gives a column of values of these types, or ``""``.

    >>> widest(["decimal(38,19)", "decimal(38,9)"]), widest(["decimal(30,20)", "decimal(38,5)"])
    ('decimal(38,9)', 'decimal(38,5)')
    """
    known = [re.sub(r"^(var)?char\(\d+\)$", "string", t) for t in types if t != "void"]
    if not known or "" in known:
        return ""
    if len(set(known)) == 1:
        return known[0]
    numeric = INTEGRAL + FLOATING
    if all(t in numeric for t in known):
        return max(known, key=numeric.index)
    decimals = [decimal_of(t) or ((INTEGRAL_DIGITS[t], 0) if t in INTEGRAL_DIGITS else None) for t in known]
    if all(decimals):
        scale = max(d[1] for d in decimals if d)
        whole = max(d[0] - d[1] for d in decimals if d)
        too_many = max(whole + scale - MAX_PRECISION, 0)  # digits behind the point give way
        return f"decimal({whole + scale - too_many},{scale - too_many})"
    return ""


def common_type(left: str, right: str) -> str:
    """The type of a column of a set operation (ANSI off) whose sides have these types, or ``""``.

    >>> common_type("int", "decimal(5,2)"), common_type("string", "int"), common_type("boolean", "int")
    ('decimal(12,2)', 'string', '')
    >>> common_type("float", "bigint"), common_type("date", "timestamp"), common_type("void", "date")
    ('float', 'timestamp', 'date')
    """
    if left == right or right == "void":
        return left
    if left == "void" or "" in (left, right):
        return right if left == "void" else ""
    both = {re.sub(r"^(var)?char\(\d+\)$", "string", t) for t in (left, right)}
    ranked = (*INTEGRAL, *FLOATING)
    if both <= set(ranked):
        return max(both, key=ranked.index)
    if any(decimal_of(t) for t in both):
        if any(is_floating(t) for t in both):
            return "double"
        if "string" not in both:
            return widest(sorted(both))
    if both <= {"date", "timestamp", "timestamp_ntz"}:
        return "timestamp" if "timestamp" in both else "timestamp_ntz"
    if len(both) == 1:
        return "string"
    other = next((t for t in both if t != "string"), "") if "string" in both else ""
    simple = other in ranked or decimal_of(other) is not None or other in ("date", "timestamp", "timestamp_ntz")
    return "string" if simple else ""


def _case(node: exp.Expr, columns: Mapping[str, str]) -> str:
    results = [branch.args["true"] for branch in node.args.get("ifs", [])]
    if node.args.get("default") is not None:
        results.append(node.args["default"])
    return widest([infer(r, columns) for r in results])


def _if(node: exp.Expr, columns: Mapping[str, str]) -> str:
    results = [node.args["true"], node.args.get("false") or exp.Null()]
    return widest([infer(r, columns) for r in results])


def _coalesce(node: exp.Expr, columns: Mapping[str, str]) -> str:
    return widest([infer(e, columns) for e in (node.this, *node.expressions)])


def _concat(node: exp.Expr, columns: Mapping[str, str]) -> str:
    """Of texts a text, of binaries a binary, of arrays an array."""
    parts = [node.left, node.right] if isinstance(node, exp.DPipe) else node.expressions
    kinds = [infer(e, columns) for e in parts]
    if any(COLLATED in k for k in kinds):
        return ""
    if "string" in kinds:
        return "string"
    if "" in kinds or any(element_type(k) or k == "binary" for k in kinds):
        return kinds[0] if len(set(kinds)) == 1 else ""
    return "string"


def _round(node: exp.Expr, columns: Mapping[str, str]) -> str:
    kind = infer(node.this, columns)
    return kind if is_floating(kind) or is_integral(kind) else ""


def _whole(node: exp.Expr, columns: Mapping[str, str]) -> str:
    kind = infer(node.this, columns)
    plain = (is_floating(kind) or is_integral(kind)) and not node.args.get("decimals")
    return "bigint" if plain else ""


def _item(node: exp.Expr, columns: Mapping[str, str]) -> str:
    """An element of an array, a value of a map."""
    kind = infer(node.this, columns)
    key_and_value = map_types(kind)
    return key_and_value[1] if key_and_value else element_type(kind)


def _field(node: exp.Expr, columns: Mapping[str, str]) -> str:
    """A field of a struct, or of each struct of an array."""
    kind = infer(node.this, columns)
    element = element_type(kind)
    found = dict(struct_fields(element or kind)).get(node.expression.name.lower(), "")
    return f"array<{found}>" if element and found else found


def _array(node: exp.Expr, columns: Mapping[str, str]) -> str:
    element = widest([infer(e, columns) for e in node.expressions])
    return f"array<{element}>" if element else ""


def _map(node: exp.Expr, columns: Mapping[str, str]) -> str:
    key, value = (element_type(infer(node.args[part], columns)) for part in ("keys", "values"))
    return f"map<{key},{value}>" if key and value else ""


_RULES: dict[type[exp.Expr], Callable[[Any, Mapping[str, str]], str]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Paren: _inner,
    exp.Neg: _number,
    exp.Abs: _number,
    exp.Alias: _inner,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Null: lambda node, columns: "void",
    exp.Boolean: _boolean,
    **{kind: _boolean for kind in (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.And, exp.Or, exp.Not)},
    **{kind: _boolean for kind in (exp.Is, exp.In, exp.Between, exp.Like, exp.NullSafeEQ)},
    **{kind: _boolean for kind in (exp.ILike, exp.Escape, exp.NullSafeNEQ)},
    **{kind: _arithmetic for kind in (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)},
    exp.IntDiv: lambda node, columns: "bigint",
    exp.DateDiff: lambda node, columns: "bigint" if node.args.get("unit") else "int",
    exp.Case: _case,
    exp.If: _if,
    **{kind: _concat for kind in (exp.Concat, exp.DPipe)},
    **{kind: _coalesce for kind in (exp.Coalesce, exp.Greatest, exp.Least)},
    exp.Nullif: lambda node, columns: widest([infer(node.this, columns)]),
    exp.Nvl2: lambda node, columns: widest([infer(node.args[part], columns) for part in ("true", "false")]),
    exp.Round: _round,
    **{kind: _whole for kind in (exp.Floor, exp.Ceil)},
    exp.Exists: _boolean,
    exp.Collate: lambda node, columns: f"string{COLLATED}{node.expression.name.lower()}",
    exp.Bracket: _item,
    exp.Dot: _field,
    exp.Array: _array,
    **{kind: _map for kind in (exp.Map, exp.VarMap)},
}

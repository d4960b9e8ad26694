"""Whether a value can equal several different values of another type.

Spark compares different types in a common one.  What looks up a value by ``value = key`` finds one key at most only if
keys that differ still differ there:

    int = string       the text as a number: 1 equals '1' and '01'; the other way round a text equals one number
    double = bigint    both as double: 2^53 equals 2^53 and 2^53 + 1
    timestamp = date   the date as its midnight, which two dates share where a time zone skips a day

Answers hold with ANSI mode on and off; of an unknown type nothing is known.
"""

from __future__ import annotations

from dbt_ivm.types import INTEGRAL_DIGITS, MAX_PRECISION, decimal_of, is_floating, is_integral

#: Decimal digits that every conversion keeps.
FLOATING_DIGITS = {"float": 6, "double": 15}
#: Types that a text is turned into before it is compared with them.
READ_FROM_TEXT = ("boolean", "date", "timestamp", "timestamp_ntz")
#: Types of a value and a key, where the key is compared as it is, or as a midnight of its own.
TIMES = (("date", "timestamp"), ("date", "timestamp_ntz"), ("timestamp_ntz", "timestamp"), ("timestamp_ntz", "date"))


def equals_one(value: str, key: str) -> bool:
    """Whether each value of the first type equals at most one value of the second.

    >>> equals_one("string", "int"), equals_one("int", "string")
    (True, False)
    >>> equals_one("bigint", "double"), equals_one("double", "bigint"), equals_one("double", "int")
    (True, False, True)
    >>> equals_one("int", "decimal(9,2)"), equals_one("decimal(38,0)", "decimal(38,10)"), equals_one("", "")
    (True, False, False)
    """
    if not value or not key:
        return False
    if value == key:
        return True
    if _is_text(value):
        return _is_text(key) or key in READ_FROM_TEXT or is_integral(key) or _survives(key, "double")
    if is_floating(value):
        return _survives(key, value)
    if _is_exact_number(value):
        return is_floating(key) or (_is_exact_number(key) and _fit_together(value, key))
    return (value, key) in TIMES


def compared_as(value: str, key: str) -> str:
    """A type in which keys are the same exactly if the same values equal them, or ``""``.

    >>> compared_as("int", "string"), compared_as("double", "bigint"), compared_as("date", "string")
    ('bigint', 'double', 'date')
    """
    if _is_text(key) and is_integral(value):
        return "bigint"  # without ANSI mode the value's own type; a text beyond it equals nothing either way
    if _is_text(key) and value in READ_FROM_TEXT:
        return value
    if _is_text(key) and (value == "double" or decimal_of(value)):
        return "double"
    if (value == "double" and is_integral(key)) or (decimal_of(key) and (_is_text(value) or is_floating(value))):
        return "double"
    return value if value == "timestamp" and key in ("date", "timestamp_ntz") else ""


def _is_text(kind: str) -> bool:
    return kind.partition("(")[0] in ("string", "varchar", "char")


def _is_exact_number(kind: str) -> bool:
    return is_integral(kind) or decimal_of(kind) is not None


def _fit_together(value: str, key: str) -> bool:
    """Whether the type in which they are compared keeps all digits of both."""
    digits = [decimal_of(t) or (INTEGRAL_DIGITS[t], 0) for t in (value, key)]
    return max(all_ - behind for all_, behind in digits) + max(behind for _, behind in digits) <= MAX_PRECISION


def _survives(kind: str, floating: str) -> bool:
    """Whether numbers of a type that differ still differ as floating ones."""
    if is_floating(kind):
        return True
    decimal = decimal_of(kind)
    digits = decimal[0] if decimal else INTEGRAL_DIGITS.get(kind)
    return digits is not None and digits <= FLOATING_DIGITS[floating]

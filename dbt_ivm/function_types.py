"""Result types of functions, where the name and the types of the arguments tell."""

from __future__ import annotations

from dbt_ivm.nested_types import element_type, map_types, struct_fields

COLLATED = " collate "


def function_type(names: frozenset[str], arguments: list[str]) -> str:
    """Spark's type of a function's result from the types of its arguments, or ``""``.

    >>> function_type(frozenset({"map_keys"}), ["map<string,int>"]), function_type(frozenset({"sqrt"}), ["int"])
    ('array<string>', 'double')
    >>> function_type(frozenset({"pad"}), ["varchar(5)"]), function_type(frozenset({"pad"}), ["binary"])
    ('string', '')
    >>> function_type(frozenset({"my_function"}), ["int"])
    ''
    """
    for name in sorted(names):
        for kind, known in RESULTS.items():
            if name in known:
                return kind
    first = arguments[0] if arguments else ""
    if names & TEXTS:
        return first if COLLATED in first else "string"
    if names & TEXTS_OF_TEXTS:
        return _text_of(first)
    if names & SPLIT:
        return "" if COLLATED in first else "array<string>"
    if names & LIKE_FIRST:
        return first
    key_and_value = map_types(first)
    if key_and_value:
        key, value = key_and_value
        entry = f"array<struct<key:{key},value:{value}>>"
        return next(
            (t for n, t in zip(OF_MAPS, (f"array<{key}>", f"array<{value}>", entry), strict=True) if n in names), ""
        )
    entries = struct_fields(element_type(first))
    if "map_from_entries" in names and len(entries) == 2:
        return f"map<{entries[0][1]},{entries[1][1]}>"
    return ""


def _text_of(first: str) -> str:
    """The type of a part of a value, or of a value made longer: most become texts, bytes and lists may not."""
    if COLLATED in first or first.startswith("array<"):
        return first
    return "" if first in ("", "void", "binary", "variant") or "<" in first else "string"


#: Functions whose result has one type, by that type.
RESULTS: dict[str, frozenset[str]] = {
    kind: frozenset(listed.split())
    for kind, listed in {
        "double": "sqrt cbrt exp expm1 ln log log10 log1p log2 pow power sin cos tan asin acos atan atan2 sinh cosh "
        "tanh degrees radians sign signum months_between",
        "string": "to_json json_format md5 sha sha1 sha2 hex base64 to_base64 concat_ws date_format from_unixtime "
        "to_char to_varchar format_number format_string format get_json_object space chr char bin typeof dayname "
        "monthname schema_of_variant",
        "int": "length char_length octet_length size array_size cardinality year month day dayofmonth quarter hour "
        "minute second dayofweek dayofyear weekofyear weekday unix_date ascii locate str_position instr levenshtein "
        "hash",
        "bigint": "xxhash64 crc32 to_unix_timestamp unix_seconds unix_millis unix_micros timestamp_diff",
        "date": "to_date trunc last_day next_day add_months make_date date_sub ts_or_ds_add date_from_unix_date",
        "timestamp": "to_timestamp date_trunc from_utc_timestamp to_utc_timestamp timestamp_seconds timestamp_millis "
        "timestamp_micros",
        "boolean": "map_contains_key array_contains isnan forall startswith starts_with endswith ends_with contains "
        "is_variant_null isnull isnotnull equal_null regexp_like",
        "map<string,string>": "str_to_map",
        "interval": "make_interval make_dt_interval make_ym_interval",
        "variant": "parse_json try_parse_json to_variant_object",
        "void": "raise_error",
    }.items()
}
#: Functions whose result is a text, in the collation of the first argument.
TEXTS = frozenset(
    "upper ucase lower lcase trim btrim initcap replace regexp_replace translate substring_index soundex "
    "regexp_extract regexp_substr split_part".split()
)
#: Functions whose result is a text of texts, and something else of bytes or arrays.
TEXTS_OF_TEXTS = frozenset("substring substr left right pad repeat reverse".split())
SPLIT = frozenset(("split", "regexp_split"))
#: Functions whose result has the type of their first argument.
LIKE_FIRST = frozenset(
    "map_filter array_sort sort_array array_distinct array_compact slice array_slice filter array_filter "
    "array_remove".split()
)
OF_MAPS = ("map_keys", "map_values", "map_entries")

#: Functions that may make maps or variants of what has none.
MAKES_MAPS = frozenset(
    "map var_map map_from_arrays map_from_entries str_to_map from_json from_xml from_avro from_protobuf parse_json "
    "try_parse_json to_variant_object variant_get try_variant_get histogram".split()
)

"""Result types of functions, where the name and the types of the arguments tell."""

from __future__ import annotations

from dbt_ivm.nested_types import element_type, map_types, struct_fields


def function_type(names: frozenset[str], arguments: list[str]) -> str:
    """Spark's type of a function's result from the types of its arguments, or ``""``.

    >>> function_type(frozenset({"map_keys"}), ["map<string,int>"]), function_type(frozenset({"sqrt"}), ["int"])
    ('array<string>', 'double')
    >>> function_type(frozenset({"my_function"}), ["int"])
    ''
    """
    for name in sorted(names):
        for kind, known in RESULTS.items():
            if name in known:
                return kind
    first = arguments[0] if arguments else ""
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


#: Functions whose result has one type, by that type.
RESULTS: dict[str, frozenset[str]] = {
    kind: frozenset(listed.split())
    for kind, listed in {
        "double": "sqrt cbrt exp expm1 ln log log1p pow power sin cos tan asin acos atan atan2 sinh cosh tanh degrees "
        "radians",
        "string": "to_json json_format md5 sha sha1 sha2 hex base64 to_base64 concat_ws date_format time_to_str "
        "format_string replace regexp_replace translate initcap space soundex substring_index schema_of_variant",
        "int": "length char_length octet_length size array_size cardinality year month day dayofmonth quarter hour "
        "minute ascii locate instr levenshtein hash",
        "bigint": "xxhash64 crc32",
        "boolean": "map_contains_key array_contains isnan forall startswith starts_with endswith ends_with contains "
        "is_variant_null",
        "map<string,string>": "str_to_map",
        "interval": "make_interval make_dt_interval make_ym_interval",
        "variant": "parse_json try_parse_json to_variant_object",
        "void": "raise_error",
    }.items()
}
#: Functions whose result has the type of their first argument.
LIKE_FIRST = frozenset(
    "nullif map_filter array_sort sort_array array_distinct array_compact slice array_slice filter array_filter "
    "reverse array_remove".split()
)
OF_MAPS = ("map_keys", "map_values", "map_entries")

#: Functions that may make maps or variants of what has none.
MAKES_MAPS = frozenset(
    "map var_map map_from_arrays map_from_entries str_to_map from_json from_xml from_avro from_protobuf parse_json "
    "try_parse_json to_variant_object variant_get try_variant_get histogram".split()
)

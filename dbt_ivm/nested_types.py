"""Types with types inside, as texts: what an array, a map or a struct is made of."""

from __future__ import annotations


def element_type(type_name: str) -> str:
    """The type of an array's elements, or ``""``.

    >>> element_type("array<struct<a:int>>"), element_type("int")
    ('struct<a:int>', '')
    """
    return type_name[6:-1] if type_name.startswith("array<") else ""


def map_types(type_name: str) -> tuple[str, str] | None:
    """The types of a map's keys and values; None of any other type.

    >>> map_types("map<string,map<int,decimal(5,2)>>")
    ('string', 'map<int,decimal(5,2)>')
    """
    parts = _inside(type_name, "map")
    return (parts[0], parts[1]) if len(parts) == 2 else None


def struct_fields(type_name: str) -> tuple[tuple[str, str], ...]:
    """Names and types of a struct's fields; none of any other type.

    >>> struct_fields("struct<a:int,b:struct<c:array<int>,d:decimal(5,2)>>")
    (('a', 'int'), ('b', 'struct<c:array<int>,d:decimal(5,2)>'))
    """
    parts = [part.partition(":") for part in _inside(type_name, "struct")]
    return tuple((name, kind) for name, _, kind in parts)


def _inside(type_name: str, outer: str) -> list[str]:
    """What stands between the brackets of a type, split at its own commas."""
    if not type_name.startswith(f"{outer}<"):
        return []
    parts, depth = [""], 0
    for letter in type_name[len(outer) + 1 : -1]:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part]


#: Spark's DESCRIBE leaves out fields of long structs.
CUT = " more fields"


def is_cut(type_name: str) -> bool:
    """Whether the text of a type is not all of it.

    >>> is_cut("struct<a:int,... 6 more fields>")
    True
    """
    return CUT in type_name


def holds_map(type_name: str) -> bool:
    """Whether values of this type may have maps or variants inside, which SQL does not compare."""
    return "map<" in type_name or "variant" in type_name or is_cut(type_name)

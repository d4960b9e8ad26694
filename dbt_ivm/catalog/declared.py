"""Keys as users declare them in dbt: ``meta.ivm``, ``constraints:``, and (only with trust_tests) dbt tests.

Precedence: meta over constraints over tests.  Works on plain dictionaries, so it needs no dbt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import ForeignKey, Key
from dbt_ivm.errors import UserError


@dataclass(frozen=True)
class DeclaredKeys:
    """Keys and foreign keys of one relation; ``changes`` is the declared kind of change capture."""

    keys: tuple[Key, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    not_null: frozenset[str] = field(default_factory=frozenset)
    changes: str = ""


@dataclass(frozen=True)
class ProjectKeys:
    """Declared keys of all sources, models, seeds and snapshots of a project."""

    nodes: tuple[tuple[RelationName, DeclaredKeys], ...] = ()

    def of(self, name: RelationName) -> DeclaredKeys:
        for known, keys in self.nodes:
            if known == name:
                return keys
        return next((keys for known, keys in self.nodes if known.matches(name)), DeclaredKeys())


def read_project_keys(nodes: Iterable[Mapping[str, Any]], tests: Iterable[Mapping[str, Any]] = ()) -> ProjectKeys:
    """Keys of every node that has a relation.

    Args:
        nodes: sources, models, seeds, snapshots as in dbt's graph.
        tests: generic test nodes.
    """
    known = [n for n in nodes if n.get("relation_name")]
    resolver = _Resolver(known)
    by_node = _tests_by_node(tests)
    return ProjectKeys(
        tuple(
            (RelationName.parse(n["relation_name"]), _read_node(n, resolver, by_node.get(n["unique_id"], ())))
            for n in known
        )
    )


def ivm_meta(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """``meta.ivm`` of a node, from its config or from the node itself."""
    config = node.get("config") or {}
    found: dict[str, Any] = {}
    for meta in (node.get("meta"), config.get("meta")):
        ivm = (meta or {}).get("ivm")
        if ivm is not None and not isinstance(ivm, Mapping):
            raise UserError("IVM_META", f"meta.ivm of {node.get('name')} must be a mapping, found {ivm!r}")
        found.update(ivm or {})
    return found


def _read_node(node: Mapping[str, Any], resolver: _Resolver, tests: Sequence[Mapping[str, Any]]) -> DeclaredKeys:
    meta = ivm_meta(node)
    constraints = list(_constraints(node))
    trusted = tests if meta.get("trust_tests") is True else ()
    not_null = {c for kind, columns, _ in constraints if kind in ("not_null", "primary_key") for c in columns}
    not_null |= {t["column"] for t in trusted if t["name"] == "not_null"}

    keys: list[Key] = []
    if meta.get("primary_key"):
        columns = _names(meta["primary_key"], node, "primary_key")
        keys.append(Key(columns, "meta.ivm.primary_key"))
        not_null |= set(columns)
    keys += [Key(_names(u, node, "unique"), "meta.ivm.unique") for u in meta.get("unique") or ()]
    keys += [Key(columns, "primary_key constraint") for kind, columns, _ in constraints if kind == "primary_key"]
    unique = [(columns, "unique constraint") for kind, columns, _ in constraints if kind == "unique"]
    unique += [((t["column"],), "unique test") for t in trusted if t["name"] == "unique"]
    # unique allows many NULLs, so it identifies rows only where NULL is excluded
    keys += [Key(columns, origin) for columns, origin in unique if set(columns) <= not_null]

    foreign: list[ForeignKey] = []
    declared = meta.get("foreign_keys")
    for entry in declared if isinstance(declared, list) else ():
        foreign.append(resolver.foreign_key(node, entry.get("columns"), entry.get("to"), entry.get("to_columns")))
    for kind, columns, constraint in constraints:
        if kind == "foreign_key" and constraint.get("to"):
            foreign.append(resolver.foreign_key(node, columns, constraint["to"], constraint.get("to_columns")))
    for test in trusted:
        if test["name"] == "relationships":
            foreign.append(resolver.foreign_key(node, [test["column"]], test["to"], [test["field"]]))
    changes = str((meta.get("changes") or {}).get("kind") or "")
    return DeclaredKeys(_each_once(keys), tuple(dict.fromkeys(foreign)), frozenset(not_null), changes)


def _each_once(keys: Iterable[Key]) -> tuple[Key, ...]:
    first: dict[frozenset[str], Key] = {}
    for key in keys:
        first.setdefault(frozenset(c.lower() for c in key.columns), key)
    return tuple(first.values())


def _constraints(node: Mapping[str, Any]) -> Iterable[tuple[str, tuple[str, ...], Mapping[str, Any]]]:
    for constraint in node.get("constraints") or ():
        yield _kind(constraint), tuple(constraint.get("columns") or ()), constraint
    for name, column in (node.get("columns") or {}).items():
        for constraint in column.get("constraints") or ():
            yield _kind(constraint), (column.get("name") or name,), constraint


def _kind(constraint: Mapping[str, Any]) -> str:
    kind = constraint.get("type")
    return str(getattr(kind, "value", kind))


def _names(value: Any, node: Mapping[str, Any], option: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, str) for v in value):
        return tuple(value)
    raise UserError(
        "IVM_META", f"meta.ivm.{option} of {node.get('name')} must be a column or a list of columns, found {value!r}"
    )


class _Resolver:
    """``ref(..)`` and ``source(..)`` in foreign keys, with optional package and version, to relations."""

    CALL = re.compile(r"^\s*(?:\{\{)?\s*(ref|source)\s*\(([^)]*)\)\s*(?:\}\})?\s*$")

    def __init__(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        self.nodes = nodes

    def foreign_key(self, node: Mapping[str, Any], columns: Any, to: Any, to_columns: Any) -> ForeignKey:
        here = _names(columns, node, "foreign_keys.columns")
        there = _names(to_columns, node, "foreign_keys.to_columns") if to_columns else here
        if len(here) != len(there):
            raise UserError("IVM_META", f"a foreign key of {node.get('name')} pairs {here} with {there}")
        return ForeignKey(here, self.relation(str(to), node), there)

    def relation(self, to: str, node: Mapping[str, Any]) -> RelationName:
        call = self.CALL.match(to)
        if call is None:
            return RelationName.parse(to)
        arguments = [a.strip() for a in call[2].split(",") if a.strip()]
        version = next((a.split("=")[1].strip("'\" ") for a in arguments if "=" in a), None)
        names = [a.strip("'\" ") for a in arguments if "=" not in a]
        for other in self.nodes:
            if self._is_meant(call[1], names, version, other):
                return RelationName.parse(other["relation_name"])
        raise UserError("IVM_META", f"a foreign key of {node.get('name')} points to {to}, which does not exist")

    @staticmethod
    def _is_meant(kind: str, names: list[str], version: str | None, other: Mapping[str, Any]) -> bool:
        if kind == "source":
            return other.get("resource_type") == "source" and [other.get("source_name"), other.get("name")] == names
        if other.get("resource_type") == "source" or not names or other.get("name") != names[-1]:
            return False
        package = len(names) < 2 or other.get("package_name") == names[0]
        wanted = version if version is not None else other.get("latest_version")
        return package and (other.get("version") is None or str(other.get("version")) == str(wanted))


def _tests_by_node(tests: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for test in tests:
        metadata = test.get("test_metadata") or {}
        arguments = metadata.get("kwargs") or {}
        inner = arguments.get("arguments") or {}
        column = arguments.get("column_name")
        nodes = (
            [test["attached_node"]] if test.get("attached_node") else (test.get("depends_on") or {}).get("nodes") or []
        )
        filtered = (test.get("config") or {}).get("where")
        if metadata.get("name") not in ("unique", "not_null", "relationships") or not column or not nodes or filtered:
            continue
        # a relationships test depends on both ends; the tested one comes last
        tested = nodes[0] if test.get("attached_node") else nodes[-1]
        entry = {"name": metadata["name"], "column": column}
        entry["to"] = arguments.get("to") or inner.get("to")
        entry["field"] = arguments.get("field") or inner.get("field")
        found.setdefault(tested, []).append(entry)
    return found

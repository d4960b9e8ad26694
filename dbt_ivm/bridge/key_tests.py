"""The queries of the generic tests ``primary_key``, ``foreign_key`` and ``fk_guard``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dbt_ivm.bridge.metadata import MetadataReader
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Table
from dbt_ivm.errors import UserError
from dbt_ivm.names import AUXILIARY_SUFFIX, STORAGE_SUFFIX
from dbt_ivm.render.key_checks import (
    dangling_rows,
    known_keys,
    referenced,
    relation,
    repeated_keys,
    replaced_keys,
)
from dbt_ivm.render.query import sql_text


def primary_key_query(model: str, columns: Any) -> str:
    """Keys that several rows have, or that contain NULL."""
    return sql_text(repeated_keys(relation(model), _columns(columns, "columns"), nulls=True))


def foreign_key_query(model: str, columns: Any, to: str, to_columns: Any) -> str:
    """Rows that reference nothing."""
    here, there = _pair(columns, to_columns)
    return sql_text(dangling_rows(relation(model), here, relation(to), there))


def fk_guard_query(
    reader: MetadataReader, model: str, columns: Any, to: str, to_columns: Any, readers: Iterable[RelationName]
) -> str:
    """Referenced keys that were removed and inserted in changes that some model has not consumed yet.

    Args:
        readers: storage tables of the models that read ``to``, as far as they exist.
    """
    here, there = _pair(columns, to_columns)
    table = stored_table(reader, RelationName.parse(to))
    missing = [k for k in there if k.lower() not in {c.name.lower() for c in table.columns}]
    if missing:
        have = ", ".join(c.name for c in table.columns)
        raise UserError("IVM_UNKNOWN_COLUMN", f"{table.name} has no column '{missing[0]}'; it has: {have}")
    if not table.versioned:
        raise UserError("IVM_META", f"{table.name} keeps no versions, so its changes cannot be looked at")
    first = oldest_version(reader, table, readers)
    last = reader.commits(table.name)[0].version
    replaced = None
    if first is not None and first < last:
        rows = reader.engine.rows(sql_text(replaced_keys(table, there, first + 1, last)))
        replaced = known_keys(table, there, rows)
    return sql_text(referenced(replaced, there, relation(model), here))


def stored_table(reader: MetadataReader, name: RelationName) -> Table:
    """The table behind a relation; an incremental_ivm model is kept in its storage table."""
    if reader.describe(name).is_view:
        name = name.sibling(name.name + STORAGE_SUFFIX)
    (found,) = reader.catalog_of(f"select * from {name}").relations
    if not isinstance(found, Table):
        raise UserError("IVM_META", f"{name} is a view, its changes cannot be looked at; name the table behind it")
    return found


def oldest_version(reader: MetadataReader, table: Table, readers: Iterable[RelationName]) -> int | None:
    """The version that the model furthest behind has consumed; None when no model has read the table yet.

    What a model's auxiliary views have consumed, it has.
    """
    consumed, pending = [], list(readers)
    while pending:
        known = reader.stored(pending.pop()).last_known
        sources = known.sources if known else {}
        pending += [n for n in map(RelationName.parse, sources) if AUXILIARY_SUFFIX in n.name]
        source = sources.get(str(table.name))
        if source is not None and source.version is not None:
            consumed.append(source.version)
    return min(consumed, default=None)


def models_reading(
    graph: Mapping[str, Any], models: Sequence[Mapping[str, Any]], to: RelationName
) -> list[RelationName]:
    """Models of ours below a relation, through views and ephemeral models."""
    every = {**graph["nodes"], **graph["sources"]}
    found = []
    for model in models:
        pending, seen = list(model["depends_on"]["nodes"]), set()
        while pending:
            unique_id = pending.pop()
            node = every.get(unique_id)
            if node is None or unique_id in seen:
                continue
            seen.add(unique_id)
            if node.get("relation_name") and RelationName.parse(node["relation_name"]).matches(to):
                found.append(RelationName.parse(model["relation_name"]))
                break
            if (node.get("config") or {}).get("materialized") in ("view", "ephemeral"):
                pending += node["depends_on"]["nodes"]
    return found


def _pair(columns: Any, to_columns: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    here, there = _columns(columns, "columns"), _columns(to_columns, "to_columns (or field)")
    if len(here) != len(there):
        raise UserError("IVM_META", f"the test pairs {len(here)} columns with {len(there)}: {here}, {there}")
    return here, there


def _columns(value: Any, name: str) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else list(value or ())
    if not listed or not all(isinstance(c, str) for c in listed):
        raise UserError("IVM_META", f"the test needs {name}: a column or a list of columns, found {value!r}")
    return tuple(listed)

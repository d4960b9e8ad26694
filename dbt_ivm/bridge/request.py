"""What a materialization asks for, taken from dbt's node and context."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_ivm.catalog.declared import ProjectKeys, ivm_meta, read_project_keys
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.errors import UserError
from dbt_ivm.names import PREFIX, STORAGE_SUFFIX
from dbt_ivm.refresh.options import Options
from dbt_ivm.storage.delta_format import FORMAT, TableOptions


@dataclass(frozen=True)
class Request:
    """``facade_kind`` is what exists under the model's own name: view, table or nothing; ``facade_text`` what the
    catalog says about it, its query included.  ``kept`` begins temporary names that no other thread uses."""

    model: str
    sql: str
    facade: RelationName
    storage: RelationName
    options: Options
    table: TableOptions
    keys: ProjectKeys
    storage_exists: bool = False
    facade_kind: str = ""
    facade_text: str = ""
    asked_full: bool = False
    is_empty_run: bool = False
    facade_token: str = ""
    kept: str = f"{PREFIX}kept"


def storage_of(facade: RelationName) -> RelationName:
    return facade.sibling(facade.name + STORAGE_SUFFIX)


def table_options(config: Mapping[str, Any]) -> TableOptions:
    file_format = config.get("file_format") or FORMAT
    if str(file_format).lower() != FORMAT:
        raise UserError(
            "IVM_FILE_FORMAT", f"file_format: {file_format} cannot be kept incrementally; use delta (or leave it out)"
        )
    for unsupported in ("clustered_by", "buckets"):
        if config.get(unsupported):
            raise UserError("IVM_CONFIG", f"{unsupported} is not possible on a Delta table; remove it")
    partition_by = config.get("partition_by") or ()
    location = config.get("location_root") or ""
    return TableOptions(
        partition_by=(partition_by,) if isinstance(partition_by, str) else tuple(partition_by),
        properties={str(k): str(v) for k, v in (config.get("tblproperties") or {}).items()},
        location=str(location),
    )


def build_request(
    node: Mapping[str, Any],
    sql: str,
    relation_name: str,
    graph: Mapping[str, Any],
    **flags: Any,
) -> Request:
    config = node.get("config") or {}
    facade = RelationName.parse(relation_name)
    table = table_options(config)
    storage = storage_of(facade)
    if table.location:
        table = TableOptions(table.partition_by, table.properties, f"{table.location.rstrip('/')}/{storage.name}")
    return Request(
        model=str(node.get("name")),
        sql=sql,
        facade=facade,
        storage=storage,
        options=Options.of(ivm_meta(node)),
        table=table,
        keys=project_keys(graph),
        facade_token=facade_token(node),
        kept=f"{PREFIX}kept_{uuid.uuid4().hex[:12]}",
        **flags,
    )


def project_keys(graph: Mapping[str, Any]) -> ProjectKeys:
    nodes = [*(graph.get("nodes") or {}).values(), *(graph.get("sources") or {}).values()]
    with_relation = [n for n in nodes if n.get("resource_type") in ("model", "seed", "snapshot", "source")]
    tests = [n for n in nodes if n.get("resource_type") == "test"]
    return read_project_keys(with_relation, tests)


def facade_token(node: Mapping[str, Any]) -> str:
    """Changes with everything of the node that the facade view shows: docs and their switches, contract."""
    config = node.get("config") or {}
    persisted = config.get("persist_docs") or {}
    shown: dict[str, Any] = {"persist": persisted}
    if persisted.get("relation"):
        shown["description"] = node.get("description")
    if persisted.get("columns"):
        shown["columns"] = {n: c.get("description") for n, c in (node.get("columns") or {}).items()}
    text = json.dumps(shown, sort_keys=True, default=str)
    return "" if not persisted else "-" + hashlib.sha256(text.encode()).hexdigest()[:8]

"""Which tables the project's models read have no change data feed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_ivm.bridge.engine import Engine
from dbt_ivm.bridge.metadata import MetadataReader
from dbt_ivm.catalog.declared import ProjectKeys
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Table
from dbt_ivm.cdc.change_feed import FEED_PROPERTY, enable_statement
from dbt_ivm.errors import UserError


def sources_without_feed(engine: Engine, graph: Mapping[str, Any], materialization: str) -> list[dict[str, str]]:
    reader = MetadataReader(engine, ProjectKeys())
    found: dict[str, dict[str, str]] = {}
    for name in _parents(graph, materialization):
        try:
            relations = reader.catalog_of(f"select * from {name}").relations
        except UserError:
            continue  # not built yet
        for relation in relations:
            if not isinstance(relation, Table) or not relation.versioned:
                continue
            if not reader.describe(relation.name).has_property(FEED_PROPERTY):
                found[str(relation.name)] = {"table": str(relation.name), "statement": enable_statement(relation.name)}
    return [found[k] for k in sorted(found)]


def _parents(graph: Mapping[str, Any], materialization: str) -> list[RelationName]:
    nodes = {**graph["nodes"], **graph["sources"]}
    names: dict[RelationName, None] = {}
    for node in graph["nodes"].values():
        if node["resource_type"] != "model" or node["config"]["materialized"] != materialization:
            continue
        for parent in _relations(node, nodes):
            names[parent] = None
    return list(names)


def _relations(node: Mapping[str, Any], nodes: Mapping[str, Any]) -> list[RelationName]:
    """Parents that have a relation; ephemeral ones stand for their own parents."""
    found: list[RelationName] = []
    for unique_id in node["depends_on"]["nodes"]:
        parent = nodes.get(unique_id)
        if parent is None:
            continue
        if parent["config"].get("materialized") == "ephemeral":
            found += _relations(parent, nodes)
        elif parent.get("relation_name"):
            found.append(RelationName.parse(parent["relation_name"]))
    return found

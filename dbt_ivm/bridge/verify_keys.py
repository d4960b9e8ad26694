"""Declared keys checked on whole tables, at a full build; refreshes check that no two rows of the view have one key."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dbt_ivm import nodes
from dbt_ivm.bridge.engine import Engine
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Key
from dbt_ivm.refresh.state import Pin
from dbt_ivm.refresh.view import CompiledView
from dbt_ivm.render.key_checks import repeated_keys
from dbt_ivm.render.query import sql_text


def violated_keys(engine: Engine, view: CompiledView, pins: Mapping[RelationName, Pin]) -> dict[str, str]:
    """Keys the view relies on that do not hold, each with an example; keys a storage table proves are not asked."""
    found: dict[str, str] = {}
    for name, key in view.layout.relied_on:
        if key.origin == "storage":
            continue
        pin = pins.get(name)
        rows = engine.rows(sql_text(double_keys(name, key, pin.current.version if pin else None)))
        if rows:
            found[f"{name} {key}"] = str(next(iter(rows[0].values())))
    return found


def double_keys(name: RelationName, key: Key, version: int | None) -> exp.Query:
    """One key that occurs more than once (NULL counts as a value), or no row."""
    table = name.table()
    if version is not None:
        table.set("version", exp.Version(this="VERSION", expression=exp.Literal.number(version), kind="AS OF"))
    struct = [part for c in key.columns for part in (exp.Literal.string(c), nodes.column(c))]
    example = exp.Anonymous(this="TO_JSON", expressions=[exp.Anonymous(this="NAMED_STRUCT", expressions=struct)])
    source = nodes.aliased(repeated_keys(table, key.columns, nulls=False), "double")
    return exp.select(exp.alias_(example, "example")).from_(source).limit(1)

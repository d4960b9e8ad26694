"""The models of integration_tests/models/patterns, planned: no Spark, no connection; dbt only renders the Jinja.

python -m scripts.patterns    the refusals, with their reasons
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dbt_ivm import names, plan_view
from dbt_ivm.catalog.declared import ProjectKeys, read_project_keys
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog, Key, Table, TableColumn, View
from dbt_ivm.frontend.parse import parse
from dbt_ivm.frontend.support import CONSTRUCTS
from dbt_ivm.operators import Operator
from dbt_ivm.operators.base import Linearity
from dbt_ivm.refresh.plan import RefreshPlan
from dbt_ivm.refresh.view import CompiledView, compile_view
from dbt_ivm.render.query import sql_text
from dbt_ivm.storage.layout import Layout, Shape

PROJECT = Path(__file__).resolve().parent.parent / "integration_tests"
FOLDER = "patterns"

#: The type of a column that is neither inferred nor documented; it only has to be one.
UNKNOWN = "string"

#: What is stored of views whose rows have no identity.
PLAIN = {Shape.OPAQUE: "its rows", Shape.BAG: "its rows, told apart by a number"}


@dataclass(frozen=True)
class Pattern:
    """One model: what people want (from its schema.yml), its query, and what the planner makes of it."""

    name: str
    title: str
    problem: str
    keys: str
    sql: str
    view: CompiledView
    plan: RefreshPlan

    @property
    def is_incremental(self) -> bool:
        return self.view.refusal is None

    @property
    def strategy(self) -> str:
        """How a refresh is applied when every source has changes of every kind."""
        return f"incremental, {self.plan.way}" if self.is_incremental else "full"

    @property
    def rule(self) -> str:
        if self.view.refusal is not None:
            return CONSTRUCTS[self.view.refusal.construct].reason
        assert self.view.layout.rows is not None
        recomputes = [o for o in _operators(self.view.layout.rows) if o.linearity is Linearity.NON_LINEAR]
        if self.view.layout.measures is None or len(recomputes) > 1:
            return "affected keys" if recomputes else "algebraic"
        if self.view.layout.shape is Shape.RECOMPUTED:
            return "affected keys"
        extremes = self.view.layout.measures.having("min", "max")
        return "algebraic; affected keys where an extremum left" if extremes else "algebraic"

    @property
    def operators(self) -> str:
        """The operators of the view, from the top, each named once."""
        if self.view.plan is None:
            return "–"
        found = dict.fromkeys(type(o).__name__ for o in _operators(self.view.plan))
        return ", ".join(n for n in found if n not in ("Project", "OneRow"))

    @property
    def stored(self) -> str:
        layout = self.view.layout
        if layout.shape in PLAIN:
            return PLAIN[layout.shape]
        if layout.shape is Shape.KEYED:
            return f"its rows, by {_identity(layout)}"
        what = "the measures"
        if layout.shape is Shape.GROUPS:
            assert layout.measures is not None
            what = "counts, sums and extrema" if layout.measures.having("min", "max") else "counts and sums"
        return f"{what} per {_identity(layout)}"


def _identity(layout: Layout) -> str:
    shown = [f"`{c}`" for c in layout.identity if not names.is_reserved(c)]
    hidden = len(layout.identity) - len(shown)
    return ", ".join([*shown, *(["hidden key columns"] if hidden else [])]) or "the whole table"


def _operators(plan: Operator) -> list[Operator]:
    """In the order of explain; DISTINCT and GROUP BY are both an Aggregate."""
    return [plan, *(o for below in plan.inputs for o in _operators(below))]


def read_patterns() -> list[Pattern]:
    """In the order of schema.yml."""
    manifest = compiled_manifest()
    known = Relations(manifest)
    models = {n["name"]: n for n in manifest["nodes"].values() if n["resource_type"] == "model"}
    listed = yaml.safe_load((PROJECT / "models" / FOLDER / "schema.yml").read_text(encoding="utf-8"))["models"]
    missing = {n["name"] for n in models.values() if n["fqn"][1] == FOLDER} - {m["name"] for m in listed}
    if missing:
        raise RuntimeError(f"not described in schema.yml: {', '.join(sorted(missing))}")
    return [_pattern(models[m["name"]], known) for m in listed]


def _pattern(node: Mapping[str, Any], known: Relations) -> Pattern:
    sql = node["compiled_code"]
    catalog = known.catalog()
    view = compile_view(sql, catalog, visible=output_names(sql))
    read = [str(t.name) for t in view.tables] if view.refusal is None else []
    plan = plan_view(
        sql, catalog.relations, model=node["relation_name"].replace("`", ""), changes=dict.fromkeys(read, (1, 2))
    )
    text = (PROJECT / node["original_file_path"]).read_text(encoding="utf-8")
    about = node["config"]["meta"]["pattern"]
    return Pattern(node["name"], about["title"], node["description"], about["keys"], text, view, plan)


class Relations:
    """What the patterns read, as the planner would find it: sources, views, and storage tables of models."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        nodes = [*manifest["sources"].values(), *manifest["nodes"].values()]
        self.keys: ProjectKeys = read_project_keys(nodes)
        self.nodes = {n["unique_id"]: n for n in nodes}
        self.relations: dict[str, tuple[Table | View, ...]] = {}
        for unique_id, node in self.nodes.items():
            if node["resource_type"] == "model" and node["fqn"][1] == FOLDER:
                self._add(unique_id)

    def catalog(self) -> Catalog:
        return Catalog.of(r for found in self.relations.values() for r in found)

    def _add(self, unique_id: str) -> None:
        node = self.nodes[unique_id]
        if unique_id in self.relations:
            return
        name = RelationName.parse(node["relation_name"])
        if node["resource_type"] == "source":
            declared = self.keys.of(name)
            self.relations[unique_id] = (Table(name, _columns(node), declared.keys, declared.foreign_keys),)
            return
        for parent in node["depends_on"]["nodes"]:
            self._add(parent)
        view = compile_view(node["compiled_code"], self.catalog(), visible=output_names(node["compiled_code"]))
        is_view = node["config"]["materialized"] == "view"
        self.relations[unique_id] = _view(node, name, view) if is_view else _maintained(node, name, view)


def _view(node: Mapping[str, Any], name: RelationName, view: CompiledView) -> tuple[View]:
    types = _types(node, view.plan)
    shown = tuple(TableColumn(c, types.get(c, UNKNOWN)) for c in output_names(view.sql))
    return (View(name, shown, view.sql, name.parts[:-1]),)


def _maintained(node: Mapping[str, Any], name: RelationName, view: CompiledView) -> tuple[View, Table]:
    """The facade and the storage table of a model."""
    layout = view.layout
    types = _types(node, layout.rows)
    storage = name.sibling(name.name + names.STORAGE_SUFFIX)
    columns = (*layout.stored, names.PART, names.SEQ, names.STATE)
    key = (Key((*layout.identity, names.PART), "storage"),) if layout.identity else ()
    table = Table(storage, tuple(TableColumn(c, types.get(c, UNKNOWN)) for c in columns), key, live=layout.identity)
    shown = tuple(TableColumn(p.name, types.get(p.name, UNKNOWN)) for p in layout.facade)
    return View(name, shown, sql_text(view.facade_select(storage.table())), name.parts[:-1]), table


def _types(node: Mapping[str, Any], plan: Operator | None) -> dict[str, str]:
    """As inferred, or as documented."""
    inferred = plan.types if plan is not None else {}
    return {c.name: c.type for c in _columns(node)} | {n: t for n, t in inferred.items() if t}


def output_names(sql: str) -> tuple[str, ...]:
    return tuple(parse(sql).named_selects)


def _columns(node: Mapping[str, Any]) -> tuple[TableColumn, ...]:
    return tuple(TableColumn(c["name"], c["data_type"] or "") for c in node["columns"].values())


def compiled_manifest() -> dict[str, Any]:
    """The project as dbt compiles it, without asking the engine anything."""
    from dbt.cli.main import dbtRunner

    with tempfile.TemporaryDirectory() as folder:
        project = str(PROJECT)
        here = ["--project-dir", project, "--profiles-dir", project, "--target-path", folder, "--log-path", folder]
        unasked = ["--quiet", "--no-introspect", "--no-populate-cache", "--exclude", "resource_type:test"]
        outcome = dbtRunner().invoke(["compile", *unasked, *here])
        if not outcome.success:
            raise RuntimeError(f"integration_tests does not compile: {outcome.exception}")
        manifest: dict[str, Any] = json.loads((Path(folder) / "manifest.json").read_text(encoding="utf-8"))
        return manifest


def main() -> None:
    for pattern in read_patterns():
        if pattern.view.refusal is not None:
            print(f"{pattern.name}: {pattern.view.refusal.reason}")


if __name__ == "__main__":
    main()

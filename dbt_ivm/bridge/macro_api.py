"""What macros may call, as ``modules.ivm.<name>``; every error becomes a dbt error with the whole message."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Mapping
from typing import Any

MATERIALIZATION = "incremental_ivm"


def functions() -> dict[str, Any]:
    return {
        "refresh": _guarded(_refresh),
        "explain": _guarded(_explain),
        "dry_run": _guarded(_dry_run),
        "compact": _guarded(_compact),
        "history": _guarded(_history),
        "is_up_to_date": _guarded(_is_up_to_date),
        "model_names": _guarded(_model_names),
        "storage_identifier": storage_identifier,
        "bag_difference": _guarded(_bag_difference),
        "result": _guarded(_result),
        "primary_key_query": _guarded(_primary_key_query),
        "foreign_key_query": _guarded(_foreign_key_query),
        "fk_guard_query": _guarded(_fk_guard_query),
        "compiled": _guarded(_compiled),
        "find_model": _guarded(_find_model),
        "table_text": _table_text,
        "sources_without_feed": _guarded(_sources_without_feed),
    }


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        from dbt_common.exceptions import CompilationError

        from dbt_ivm.bridge.engine import EngineError
        from dbt_ivm.errors import IvmError

        node = kwargs.pop("node", None)
        try:
            return function(*args, **kwargs)
        except (IvmError, EngineError) as error:
            raise CompilationError(str(error), node=node) from error

    return call


def storage_identifier(identifier: str) -> str:
    from dbt_ivm.names import STORAGE_SUFFIX

    return identifier + STORAGE_SUFFIX


def _refresh(
    adapter: Any, model: Mapping[str, Any], sql: str, relation: Any, graph: Mapping[str, Any], flags: Mapping[str, Any]
) -> Any:
    """Refresh one model; returns the outcome for the materialization."""
    return _refresher(adapter, model, sql, relation, graph, flags).run()


def _refresher(
    adapter: Any, model: Mapping[str, Any], sql: str, relation: Any, graph: Mapping[str, Any], flags: Mapping[str, Any]
) -> Any:
    from dbt_ivm.bridge.engine import Engine
    from dbt_ivm.bridge.refresher import Refresher
    from dbt_ivm.bridge.request import build_request

    request = build_request(
        model,
        sql,
        relation.include(database=relation.database is not None).render()
        if hasattr(relation, "include")
        else str(relation),
        graph,
        storage_exists=bool(flags.get("storage_exists")),
        facade_kind=str(flags.get("facade_kind") or ""),
        facade_text=str(flags.get("facade_text") or ""),
        asked_full=bool(flags.get("asked_full")),
        is_empty_run=bool(flags.get("is_empty_run")),
    )
    return Refresher(Engine(adapter), request, _warn)


def _warn(message: str) -> None:
    """A warning as dbt's own: counted, and an error under --warn-error."""
    from dbt.events.types import JinjaLogWarning
    from dbt_common.events.functions import warn_or_error

    warn_or_error(JinjaLogWarning(msg=f"dbt-ivm: {message}"))


def _result(outcome: Any) -> Any:
    """The outcome as dbt's adapter response."""
    from dbt_ivm.bridge.response import IvmResponse

    affected = [v for v in outcome.rows.as_dict().values() if v is not None]
    return IvmResponse(
        _message=outcome.status, code=outcome.strategy, rows_affected=sum(affected), ivm=outcome.response
    )


def _explain(
    adapter: Any, model: Mapping[str, Any], sql: str, relation: Any, graph: Mapping[str, Any], flags: Mapping[str, Any]
) -> str:
    text: str = _refresher(adapter, model, sql, relation, graph, flags).explain()
    return text


def _dry_run(
    adapter: Any, model: Mapping[str, Any], sql: str, relation: Any, graph: Mapping[str, Any], flags: Mapping[str, Any]
) -> dict[str, Any]:
    """The SELECT of the rows the next refresh would apply, and the decision."""
    from dbt_ivm.render.query import sql_text

    refresher = _refresher(adapter, model, sql, relation, graph, flags)
    prepared = refresher.prepare()
    decision = refresher.decide(prepared)
    query = refresher.next_rows(prepared) if decision.strategy == "incremental" else None
    return {
        "strategy": decision.strategy,
        "reason": decision.reason,
        "sql": sql_text(query) if query is not None else None,
    }


def _compact(
    adapter: Any, model: Mapping[str, Any], sql: str, relation: Any, graph: Mapping[str, Any], flags: Mapping[str, Any]
) -> str:
    """Compact one model's storage table now; says what happened."""
    text: str = _refresher(adapter, model, sql, relation, graph, flags).compact_now()
    return text


def _history(
    adapter: Any,
    model: Mapping[str, Any],
    sql: str,
    relation: Any,
    graph: Mapping[str, Any],
    flags: Mapping[str, Any],
    limit: int = 20,
) -> list[dict[str, Any]]:
    """A line per commit of the model's storage table, newest first; none when it is not built yet."""
    from dbt_ivm.bridge.history import history

    refresher = _refresher(adapter, model, sql, relation, graph, flags)
    if not refresher.request.storage_exists:
        return []
    return history(refresher.engine, refresher.request.storage, int(limit))


def _is_up_to_date(
    adapter: Any, model: Mapping[str, Any], sql: str, relation: Any, graph: Mapping[str, Any], flags: Mapping[str, Any]
) -> str:
    """Empty when a refresh now would find nothing to do; otherwise what it would do."""
    refresher = _refresher(adapter, model, sql, relation, graph, flags)
    if not refresher.request.storage_exists:
        return "not built yet"
    decision = refresher.decide(refresher.prepare())
    if decision.strategy == "none":
        return ""
    return f"the next refresh is {decision.strategy}" + (f" because {decision.reason}" if decision.reason else "")


def _sources_without_feed(adapter: Any, graph: Mapping[str, Any]) -> list[dict[str, str]]:
    """Delta tables that incremental_ivm models read (views expanded) whose change feed is off, with the statement."""
    from dbt_ivm.bridge.engine import Engine
    from dbt_ivm.bridge.feeds import sources_without_feed

    return sources_without_feed(Engine(adapter), graph, MATERIALIZATION)


def _table_text(table: Any) -> str:
    """Rows of a query as text; the table's own printing goes to where output went when dbt was loaded."""
    text = io.StringIO()
    table.print_table(max_columns=None, max_column_width=40, output=text)
    return text.getvalue().rstrip()


def _bag_difference(
    expected: str, actual: str, columns: list[list[str]], tolerance: float | None = None, where: str | None = None
) -> str:
    from dbt_ivm.bridge.bag_difference import bag_difference

    return bag_difference(expected, actual, [(c[0], c[1]) for c in columns], tolerance, where)


def _primary_key_query(model: Any, columns: Any) -> str:
    from dbt_ivm.bridge.key_tests import primary_key_query

    return primary_key_query(str(model), columns)


def _foreign_key_query(model: Any, columns: Any, to: Any, to_columns: Any) -> str:
    from dbt_ivm.bridge.key_tests import foreign_key_query

    return foreign_key_query(str(model), columns, str(to), to_columns)


def _fk_guard_query(adapter: Any, graph: Mapping[str, Any], model: Any, columns: Any, to: Any, to_columns: Any) -> str:
    from dbt_ivm.bridge.engine import Engine
    from dbt_ivm.bridge.key_tests import fk_guard_query, models_reading
    from dbt_ivm.bridge.metadata import MetadataReader
    from dbt_ivm.bridge.request import storage_of
    from dbt_ivm.catalog.declared import ProjectKeys
    from dbt_ivm.catalog.relation_name import RelationName

    reading = models_reading(graph, _models(graph), RelationName.parse(str(to)))
    reader = MetadataReader(Engine(adapter), ProjectKeys())
    return fk_guard_query(reader, str(model), columns, str(to), to_columns, [storage_of(m) for m in reading])


def _compiled(ref: Any, unique_id: str) -> str:
    """A model's compiled SQL, ephemeral parents included, whatever command is running.

    ``ref`` is the function of the Jinja context; it knows the manifest and the project's configuration.
    """
    import copy

    from dbt.compilation import Compiler

    node = copy.deepcopy(ref.manifest.nodes[unique_id])
    node.compiled, node.compiled_code, node.extra_ctes, node.extra_ctes_injected = False, None, [], False
    compiled = Compiler(ref.config).compile_node(node, ref.manifest, {}, write=False)
    return str(compiled.compiled_code)


def _models(graph: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        n
        for n in graph["nodes"].values()
        if n["resource_type"] == "model" and n["config"]["materialized"] == MATERIALIZATION
    ]


def _model_names(graph: Mapping[str, Any]) -> list[str]:
    return sorted(n["name"] for n in _models(graph))


def _find_model(graph: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The incremental_ivm model of that name, or an error that lists the ones there are."""
    from dbt_ivm.errors import UserError

    ours = _models(graph)
    for node in ours:
        if name in (node["name"], node["unique_id"]):
            found: Mapping[str, Any] = node
            return found
    known = ", ".join(sorted(n["name"] for n in ours)) or "none"
    raise UserError("IVM_UNKNOWN_MODEL", f"there is no incremental_ivm model '{name}'; there are: {known}")

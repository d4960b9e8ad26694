"""Facts read from an engine, with a fake one: views to any depth, and views that cannot be expanded."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_ivm.bridge.engine import EngineError
from dbt_ivm.bridge.metadata import MetadataReader
from dbt_ivm.catalog.declared import DeclaredKeys, ProjectKeys
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.errors import UserError
from dbt_ivm.refresh.view import compile_view


class FakeEngine:
    """Answers DESCRIBE TABLE EXTENDED; a relation is a list of columns and, for a view, its text."""

    def __init__(self, relations: dict[str, tuple[list[str], str | None]]) -> None:
        self.relations = relations

    def rows(self, sql: str) -> list[dict[str, Any]]:
        name = sql.removeprefix("DESCRIBE TABLE EXTENDED ")
        if name not in self.relations:
            raise EngineError(f"[TABLE_OR_VIEW_NOT_FOUND] {name}")
        columns, text = self.relations[name]
        rows = [{"col_name": c, "data_type": "int"} for c in columns]
        rows.append({"col_name": "# Detailed Table Information", "data_type": ""})
        details = {"Type": "MANAGED", "Provider": "delta"} if text is None else {"Type": "VIEW", "View Text": text}
        return rows + [{"col_name": k, "data_type": v} for k, v in details.items()]


def compiled(sql: str, relations: dict[str, tuple[list[str], str | None]], keys: ProjectKeys = ProjectKeys()) -> Any:  # noqa: B008
    reader = MetadataReader(FakeEngine(relations), keys)  # type: ignore[arg-type]
    return compile_view(sql, reader.catalog_of(sql), visible=("a",))


TABLE: tuple[list[str], None] = (["a"], None)


def test_views_on_views() -> None:
    view = compiled(
        "select a from d.top",
        {"d.top": (["a"], "select a from d.middle"), "d.middle": (["a"], "select a from d.t"), "d.t": TABLE},
    )
    assert view.refusal is None and [str(t.name) for t in view.tables] == ["d.t"]


@pytest.mark.parametrize("text", ["", "select from where"])
def test_a_view_that_cannot_be_expanded_is_a_refusal(text: str) -> None:
    """Also when other relations follow it in the query."""
    view = compiled("select v.a from d.v join d.t on v.a = t.a", {"d.v": (["a"], text), "d.t": TABLE})
    assert view.refusal is not None and view.refusal.construct == "view_not_expandable"
    assert "d.v" in view.refusal.reason


def test_missing_relation() -> None:
    with pytest.raises(UserError, match=r"IVM_UNKNOWN_RELATION.*d\.gone"):
        compiled("select a from d.gone", {})


def test_change_capture_that_is_not_available() -> None:
    keys = ProjectKeys(((RelationName.parse("d.t"), DeclaredKeys(changes="audit_columns")),))
    with pytest.raises(UserError, match="IVM_NOT_YET"):
        compiled("select a from d.t", {"d.t": TABLE}, keys)


class BrokenEngine(FakeEngine):
    """A storage table whose history cannot be read."""

    def __init__(self, columns: list[str], message: str) -> None:
        super().__init__({"d.m__ivm": (columns, None)})
        self.message = message

    def rows(self, sql: str) -> list[dict[str, Any]]:
        if sql.startswith("DESCRIBE HISTORY"):
            raise EngineError(self.message)
        return super().rows(sql)


STORAGE = RelationName.parse("d.m__ivm")


def test_a_failure_that_may_pass_is_no_reason_to_rebuild() -> None:
    engine = BrokenEngine(["a", "__ivm_part"], "Read timed out")
    with pytest.raises(EngineError, match="timed out"):
        MetadataReader(engine, ProjectKeys()).stored(STORAGE)  # type: ignore[arg-type]


def test_a_storage_table_that_lost_its_files_is_rebuilt() -> None:
    engine = BrokenEngine(["a", "__ivm_part"], "[DELTA_TRUNCATED_TRANSACTION_LOG] gone")
    stored = MetadataReader(engine, ProjectKeys()).stored(STORAGE)  # type: ignore[arg-type]
    assert stored.state is None and "cannot be read: [DELTA_TRUNCATED" in stored.problem


def test_another_table_of_that_name_is_not_replaced() -> None:
    engine = BrokenEngine(["a"], "[DELTA_TABLE_ONLY_OPERATION] d.m__ivm is not a Delta table")
    with pytest.raises(UserError, match="IVM_NOT_OURS"):
        MetadataReader(engine, ProjectKeys()).stored(STORAGE)  # type: ignore[arg-type]


VIEWED = "select percent_rank() over (order by a) as a from d.v"


def test_a_view_below_a_query_without_a_plan_is_part_of_its_definition() -> None:
    one = compiled(VIEWED, {"d.v": (["a"], "select a from d.t"), "d.t": TABLE})
    other = compiled(VIEWED, {"d.v": (["a"], "select a from d.t where a > 1"), "d.t": TABLE})
    assert one.refusal is not None and one.unsteady is None
    assert one.fingerprint != other.fingerprint


def test_how_a_parent_is_kept_is_no_part_of_the_definition_of_a_query_without_a_plan() -> None:
    """The facade's text changes between merge and log, with the parent's commits as before."""
    kept = {"m__ivm": (["a", "__ivm_part"], None)}
    facades = [f"select a from m__ivm as stored where __ivm_part = /* {kind} */ 0" for kind in ("merge", "log")]
    one, other = (compiled(VIEWED, {"d.v": (["a"], text), **kept}) for text in facades)
    assert one.refusal is not None and one.fingerprint == other.fingerprint


@pytest.mark.parametrize(
    ("sql", "clocks", "unsteady"),
    [
        ("select percent_rank() over (order by a) as a from d.t where a > day(current_date())", ["__ivm_clock.today"], ""),
        ("select percent_rank() over (order by a) as a from d.v", ["__ivm_clock.now"], ""),
        ("select percent_rank() over (order by a + rand()) as a from d.t", [], "non_deterministic"),
        ("select percent_rank() over (order by a) as a from d.t where my_function(a)", [], "unknown_function"),
        ("select percent_rank() over (order by a) as a from d.t tablesample (10 percent)", [], "sample"),
        ("select percent_rank() over (order by x.a) as a from d.t x join d.bad b on x.a = b.a", [], "view_not_expandable"),
        ("select percent_rank() over (order by a) as a from d.t", [], ""),
    ],
)  # fmt: skip
def test_what_else_a_query_without_a_plan_depends_on(sql: str, clocks: list[str], unsteady: str) -> None:
    view = "select a from d.t where a < unix_timestamp()"
    found = compiled(sql, {"d.t": TABLE, "d.v": (["a"], view), "d.bad": (["a"], "select from where")})
    assert found.refusal is not None
    assert [str(t.name) for t in found.tables if str(t.name).startswith("__ivm")] == clocks
    assert (found.unsteady.construct if found.unsteady else "") == unsteady

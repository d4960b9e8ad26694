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

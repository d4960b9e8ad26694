"""Plan shapes of the fourteen views of the benchmark: how many branches, and how often the root is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pytest

from benchmarks.keys.schema import TABLES
from benchmarks.keys.views import GROUPED, PLAIN, VIEWS, View
from dbt_ivm import plan_view, table
from dbt_ivm.analysis.join_graph import join_graph
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog, Table
from dbt_ivm.operators import Join, Operator
from dbt_ivm.optimizer.contract_lookups import trees_in
from dbt_ivm.refresh.foreign_keys import EdgeFacts
from dbt_ivm.refresh.keeping import Keeping, Known
from dbt_ivm.refresh.plan import RefreshPlan
from dbt_ivm.refresh.view import compile_view

PREFIX = {"store_sales": "ss", "store_returns": "sr", "catalog_sales": "cs", "web_sales": "ws", "customer_address": "ca",
          "item": "i", "date_dim": "d", "store": "s", "customer": "c", "lineitem": "l", "orders": "o", "h_customer": "c",
          "nation": "n"}  # fmt: skip


def text(view: View, shape: str) -> str:
    return (
        re.sub(r"\{\{ source\('raw', '(\w+)'\) \}\}", r"tpc.\1", view.query(shape))
        .replace("{", "tpc.")
        .replace("}", "")
    )


def tables_of(view: View, without: Iterable[str] = (), unkeyed: Iterable[str] = ()) -> list[Table]:
    """The tables with the columns that the view mentions; every column is an int.

    Args:
        without: tables whose foreign keys are not declared.
        unkeyed: tables whose primary key is not declared.
    """
    words = set(re.findall(r"\w+", view.query(PLAIN) + view.query(GROUPED)))
    found = []
    for name in view.tables:
        keys = view.foreign_keys(name)
        needed = {*TABLES[name].primary_key, *(c for key in keys for c in key.columns)}
        columns = sorted(needed | {w for w in words if w.startswith(f"{PREFIX[name]}_")})
        foreign = [(key.columns, f"tpc.{key.to}", TABLES[key.to].primary_key) for key in keys if name not in without]
        found.append(
            table(f"tpc.{name}", dict.fromkeys(columns, "int"),
                  primary_key=() if name in unkeyed else TABLES[name].primary_key, foreign_keys=foreign)
        )  # fmt: skip
    return found


def joins_in(plan: Operator) -> list[Join]:
    return ([plan] if isinstance(plan, Join) else []) + [j for below in plan.inputs for j in joins_in(below)]


def roots(view: View, tables: list[Table], shape: str = PLAIN) -> int:
    """Branches of the delta: one per rooted tree of the join."""
    compiled = compile_view(text(view, shape), Catalog.of(tables))
    assert compiled.refusal is None and compiled.plan is not None
    (join,) = joins_in(compiled.plan)
    return len(join_graph(join, {t.name: t for t in tables}).roots)


def refresh(
    view: View,
    shape: str,
    replaced: bool,
    sql: str = "",
    more: Mapping[str, object] | None = None,
    references: Mapping[str, EdgeFacts] | None = None,
) -> RefreshPlan:
    """A refresh in which every table gained and lost a row; of referenced tables under other keys, or under the same."""
    tables = tables_of(view)
    changes = {str(t.name): (1, 2) for t in tables}
    options = {"foreign_keys": "trust", **(more or {})}
    sql = sql or text(view, shape)
    first = plan_view(sql, tables, changes=changes, options=options)
    assert first.steps[0].kind == "look at small changes" and first.context is not None
    from dbt_ivm.refresh.before_commit import fetchable

    carried = {}
    for change in fetchable(first.context):
        width = len(change.fields)
        old, new = (
            ("7",) * width,
            tuple("7" if replaced and _is_key(change.source, f.column) else "8" for f in change.fields),
        )
        carried[change.source] = ((*old, "-1"), (*new, "1"))
    known = Known(carried=carried, references=references)
    counted = dict.fromkeys(references or (), 0)
    return plan_view(sql, tables, changes=changes, options=options, dangling=counted, keeping=Keeping(known=known))


def _is_key(source: RelationName, column: str) -> bool:
    return column in TABLES[source.name].primary_key


@pytest.mark.parametrize("shape", [PLAIN, GROUPED])
@pytest.mark.parametrize("view", VIEWS.values(), ids=lambda v: v.name)
def test_one_branch_per_root_and_the_root_is_not_read(view: View, shape: str) -> None:
    assert roots(view, tables_of(view), shape) == (2 if view.name == "arbt" else 1)
    if len(view.roots) == 1:  # between two roots each is read for the change of the other
        root = f"Scan tpc.{view.roots[0]} "
        assert refresh(view, shape, replaced=False).delta_plan.count(root) == 0
        assert refresh(view, shape, replaced=True).delta_plan.count(root) == 1


def test_branches_of_the_graph_with_two_roots() -> None:
    """A foreign key shortens what is touched; one branch needs a unique key only, on either side."""
    view = VIEWS["arbt"]
    assert roots(view, tables_of(view)) == 2
    assert roots(view, tables_of(view, without=["store_returns"])) == 2
    assert roots(view, tables_of(view, without=["store_returns"], unkeyed=["store_sales"])) == 2
    assert roots(view, tables_of(view, without=["store_returns"], unkeyed=["store_sales", "store_returns"])) == 3


@pytest.mark.parametrize("shape", (PLAIN, GROUPED))
@pytest.mark.parametrize("view", VIEWS.values(), ids=lambda view: view.name)
def test_no_branch_joins_tables_that_no_condition_connects(view: View, shape: str) -> None:
    """Counting, every table changed: filters on single tables must not decide the order of a branch."""
    tables = tables_of(view)
    plan = plan_view(
        text(view, shape),
        tables,
        changes={str(t.name): (1, 2) for t in tables},
        options={"rules_off": ["contract_lookups"], "apply": "log"},
        keeping=Keeping(fetches=False),
    )
    computed = [step.sql for step in plan.steps if step.kind == "keep"]
    assert len(computed) == len(view.tables) + 1 and "UNION ALL" in computed[-1]
    assert not any("CROSS JOIN" in sql for sql in computed)


@pytest.mark.parametrize("name", ["ss_1dim", "ss_3dim"])
def test_rows_to_look_up_are_chosen_by_broadcast_keys_before_they_are_repeated(name: str) -> None:
    """The root is neither shuffled nor repeated: keys of small changes are few, also those found in a dimension."""
    view = VIEWS[name]
    tables = tables_of(view)
    changes = {str(t.name): (1, 2) for t in tables}
    options = {"foreign_keys": "verify", "apply": "log"}
    unknown = plan_view(text(view, PLAIN), tables, changes=changes, options=options, keeping=Keeping(fetches=False))
    counted = {edge.edge: 0 for edge in unknown.edges}
    plan = plan_view(
        text(view, PLAIN), tables, changes=changes, options=options, dangling=counted, keeping=Keeping(fetches=False)
    )
    (rows,) = (step.sql for step in plan.steps if step.name.endswith("rows_1"))
    lookups = len(tables) - 1
    assert rows.count("tpc.store_sales ") == 1 and rows.count("CROSS JOIN") == 1
    before, after = rows.split("CROSS JOIN")
    assert "SEMI JOIN" in before and "JOIN" not in after
    assert rows.count("BROADCAST") == 2 * lookups, "of each edge the inserted keys, and the touched ones"


ROOTED = [view for view in VIEWS.values() if len(view.roots) == 1]


def left_joined(view: View, shape: str) -> str:
    """The view with every dimension by LEFT JOIN."""
    return text(view, shape).replace("\njoin ", "\nleft join ")


def left_refresh(view: View, shape: str, replaced: bool, **options: object) -> RefreshPlan:
    """As ``refresh``, of the view with left joins."""
    return refresh(view, shape, replaced, left_joined(view, shape), options)


@pytest.mark.parametrize("shape", [PLAIN, GROUPED])
@pytest.mark.parametrize("view", ROOTED, ids=lambda v: v.name)
def test_left_joins_along_keys_are_one_branch(view: View, shape: str) -> None:
    """The root is read only when a referenced key was replaced, and once then; without the rule always."""
    if view.where:  # a condition on a dimension makes its join inner; the others stay left
        assert "WHERE" in left_joined(view, shape).upper()
    plan = left_refresh(view, shape, replaced=False)
    assert plan.context is not None
    (tree,) = trees_in(plan.context.root)
    assert len(tree.members) == len(view.tables) and "LeftJoin" not in plan.context.root.explain()
    assert any(lookup.keeps for lookup in tree.lookups)
    root = f"Scan tpc.{view.roots[0]} "
    assert plan.delta_plan.count(root) == 0
    assert left_refresh(view, shape, replaced=True).delta_plan.count(root) == 1
    counted = left_refresh(view, shape, replaced=False, rules_off=["contract_lookups"])
    assert counted.delta_plan.count(root) >= 2


@pytest.mark.parametrize("name", ["ss_3dim", "ws_3dim"])
def test_the_commit_reads_each_left_joined_dimension_once(name: str) -> None:
    """With trust, and with verify when the look at foreign keys saw no key of several rows; otherwise twice."""
    view = VIEWS[name]
    sql = left_joined(view, PLAIN)
    trusted = refresh(view, PLAIN, replaced=True, sql=sql)
    edges = [edge.edge for edge in trusted.edges]
    for is_once, reads in ((True, 1), (False, 2)):
        facts = {edge: EdgeFacts(is_once=is_once) for edge in edges}
        verified = refresh(view, PLAIN, True, sql, {"foreign_keys": "verify"}, facts)
        for plan, expected in ((trusted, 1), (verified, reads)):
            assert plan.steps[-1].kind == "apply"
            for dimension in set(view.tables) - set(view.roots):
                assert plan.steps[-1].sql.count(f"tpc.{dimension} VERSION AS OF") == expected, dimension

"""Plan shapes of views whose subtrees are kept apart: which they are, and what the changes of each plan read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.keys.schema import TABLES
from benchmarks.keys.views import GROUPED, PLAIN, VIEWS, View
from dbt_ivm import plan_view, table
from dbt_ivm.analysis.join_graph import join_graph
from dbt_ivm.bridge.key_tests import oldest_version
from dbt_ivm.bridge.metadata import Stored
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog, Table
from dbt_ivm.refresh.before_commit import fetchable
from dbt_ivm.refresh.keeping import Keeping, Known
from dbt_ivm.refresh.options import Options
from dbt_ivm.refresh.plan import RefreshPlan
from dbt_ivm.refresh.state import SourceState, State
from dbt_ivm.refresh.view import CompiledView, compile_view
from tests.test_paper_views import joins_in, tables_of, text

FACADE = RelationName.parse("db.m")
#: Views with subtrees, and the tables each of them joins, one line per subtree.
SUBTREES = {
    "snwf": ["customer customer_address"],
    "snwf_filter": ["customer customer_address"],
    "arbt": ["store_sales date_dim store"],
    "chain": ["h_customer nation", "orders m__ivm_aux_1"],
    "chain_filter": ["h_customer nation", "orders m__ivm_aux_1"],
}
ONE_ROOT = [name for name in SUBTREES if name != "arbt"]


def known(view: View, total: bool = True) -> list[Table]:
    """The tables; with ``total`` no column is nullable."""
    return [replace(t, columns=tuple(replace(c, nullable=not total) for c in t.columns)) for t in tables_of(view)]


def compiled(view: View, shape: str = PLAIN, total: bool = True, **options: str) -> CompiledView:
    chosen = Options.of({"auxiliary": "subtrees", **options})
    return compile_view(text(view, shape), Catalog.of(known(view, total)), chosen, facade=FACADE)


@pytest.mark.parametrize("shape", [PLAIN, GROUPED])
@pytest.mark.parametrize("view", VIEWS.values(), ids=lambda v: v.name)
def test_every_looked_up_table_that_looks_up_others_is_kept_with_them(view: View, shape: str) -> None:
    found = compiled(view, shape)
    assert [" ".join(t.name.name for t in a.view.tables) for a in found.auxiliary] == SUBTREES.get(view.name, [])
    plain = compile_view(text(view, shape), Catalog.of(known(view)), facade=FACADE)
    assert (found.fingerprint == plain.fingerprint) == (not found.auxiliary)
    assert found.layout.facade == plain.layout.facade and found.layout.identity == plain.layout.identity
    for part in (found, *(a.view for a in found.auxiliary)):
        assert part.plan is not None and part.layout.rows is not None
        (join,) = joins_in(part.layout.rows)
        roots = join_graph(join, {t.name: t for t in part.tables}).roots
        assert len(roots) == (2 if view.name == "arbt" and part is found else 1)


def refresh(view: View, replaced: bool, mode: str, total: bool = True, counted: bool = False) -> RefreshPlan:
    """A refresh in which every table gained and lost a row: under other keys, or under the same."""
    tables = known(view, total)
    options = {"foreign_keys": mode, "auxiliary": "subtrees"}
    changes = {str(t.name): (1, 2) for t in tables}
    dangling: dict[str, int] = {}

    def plan(keeping: Keeping) -> RefreshPlan:
        return plan_view(
            text(view, PLAIN),
            tables,
            model="db.m",
            changes=changes,
            options=options,
            keeping=keeping,
            dangling=dangling,
        )

    first = plan(Keeping())
    if counted:
        dangling = {edge.edge: 0 for part in (first, *first.auxiliary) for edge in part.edges}
    carried = {}
    for part in (*first.auxiliary, first):
        assert part.context is not None
        for change in fetchable(part.context):
            columns = [f.column for f in change.fields]
            keys = (
                TABLES[change.source.name].primary_key
                if change.source.name in TABLES
                else part.context.tables[change.source].live
            )
            new = tuple("7" if replaced and c in keys else "8" for c in columns)
            carried[change.source] = ((*("7" for _ in columns), "-1"), (*new, "1"))
    return plan(Keeping(known=Known(carried=carried, references={})))


def roots_read(view: View, plan: RefreshPlan) -> list[int]:
    """How often the root of each plan is read, auxiliary views first."""
    tops = [line.split()[0] for line in SUBTREES[view.name]] + [view.roots[0]]
    plans = (*plan.auxiliary, plan)
    return [p.delta_plan.count(f"Scan tpc.{top} ") for p, top in zip(plans, tops, strict=True)]


@pytest.mark.parametrize("name", ONE_ROOT)
def test_no_root_is_read_unless_a_key_was_replaced(name: str) -> None:
    view = VIEWS[name]
    none, all_of_them = [0] * (len(SUBTREES[name]) + 1), [1] * (len(SUBTREES[name]) + 1)
    assert roots_read(view, refresh(view, False, "trust")) == none
    assert roots_read(view, refresh(view, True, "trust")) == all_of_them


def test_columns_that_may_be_null_are_not_trusted_to_lead_somewhere() -> None:
    """An unchanged row of the root may get its customer when that one gets an address."""
    view = VIEWS["snwf"]
    assert roots_read(view, refresh(view, False, "trust", total=False)) == [0, 1]
    plan = refresh(view, False, "trust", total=False)
    assert {e.edge.split("(")[1].split(")")[0]: e.status for e in plan.edges} == {
        "ws_bill_customer_sk": "not trusted", "ws_item_sk": "trusted", "ws_sold_date_sk": "trusted"
    }  # fmt: skip
    # where rows without a match were counted it does not matter what is declared
    (tree,) = {e.tree for e in declared(refresh(view, False, "verify", total=False, counted=True))}
    assert {lookup.reach.value for lookup in tree.lookups} == {"removed"}


def declared(plan: RefreshPlan) -> list:  # type: ignore[type-arg]
    from dbt_ivm.refresh.foreign_keys import declared_edges

    assert plan.context is not None
    return declared_edges(plan.context.root)


def test_edges_go_by_the_names_that_users_declared() -> None:
    plan = refresh(VIEWS["chain"], False, "trust")
    assert [e.edge for p in (*plan.auxiliary, plan) for e in p.edges] == [
        "tpc.h_customer(c_nationkey) -> tpc.nation(n_nationkey)",
        "tpc.orders(o_custkey) -> tpc.h_customer(c_custkey)",
        "tpc.lineitem(l_orderkey) -> tpc.orders(o_orderkey)",
    ]


def test_conditions_stay_above() -> None:
    """An auxiliary view has all rows of its top, whatever the model filters: its key says as much as the table's."""
    found = compiled(VIEWS["chain_filter"])
    assert found.layout.rows is not None and "orders_o_orderdate >=" in found.layout.rows.explain()
    for part in found.auxiliary:
        assert part.view.layout.rows is not None
        rows = part.view.layout.rows.explain()
        assert "orderdate >=" not in rows and "Filter" not in rows.replace("Filter __ivm_part = 0", "")


A = table("s.a", {"id": "int", "b": "int"}, ["id"], foreign_keys=[(["b"], "s.b", ["id"])])
B = table("s.b", {"id": "int", "c": "int", "v": "int"}, ["id"], foreign_keys=[(["c"], "s.c", ["id"])])
C = table("s.c", {"id": "int", "w": "int"}, ["id"])
CHAIN = "select a.id, b.v, c.w from s.a a join s.b b on a.b = b.id join s.c c on b.c = c.id"


def parts(sql: str, *tables: Table, **options: object) -> list[str]:
    chosen = Options.of({"auxiliary": "subtrees", **options})
    found = compile_view(sql, Catalog.of(tables), chosen, facade=FACADE)
    assert found.refusal is None
    return [" ".join(t.name.name for t in a.view.tables) for a in found.auxiliary]


@pytest.mark.parametrize("value", ["auto", "off"])
def test_nothing_is_chosen_automatically(value: str) -> None:
    assert parts(CHAIN, A, B, C) == ["b c"]
    assert parts(CHAIN, A, B, C, auxiliary=value) == []


def test_noop_without_a_key_or_a_version() -> None:
    assert parts(CHAIN, A, B, table("s.c", {"id": "int", "w": "int"})) == []
    assert parts(CHAIN, A, table("s.b", {"id": "int", "c": "int", "v": "int"}), C) == []
    assert parts(CHAIN, A, B, replace(C, versioned=False)) == []
    assert parts(CHAIN, A, B, C, rules_off=["contract_lookups"]) == []


def test_noop_where_a_miss_would_hide_whether_the_users_key_holds() -> None:
    total = replace(B, columns=tuple(replace(c, nullable=False) for c in B.columns))
    assert parts(CHAIN, A, B, C, on_key_violation="error") == []
    assert parts(CHAIN, A, total, C, on_key_violation="error") == ["b c"]
    assert parts(CHAIN, A, B, C, on_key_violation="error", foreign_keys="trust") == ["b c"]


def test_noop_on_left_joins_and_on_a_filtered_key() -> None:
    assert parts(CHAIN.replace("join s.c", "left join s.c"), A, B, C) == []
    keyed = table("s.b", {"id": "int", "c": "int", "v": "int"}, ["id", "v"])
    assert parts(f"{CHAIN} where b.v = 1", A, keyed, C) == []


def test_self_references_and_two_roles() -> None:
    tree = table("s.t", {"id": "int", "up": "int", "v": "int"}, ["id"], foreign_keys=[(["up"], "s.t", ["id"])])
    sql = (
        "select a.v, b.v as v2, c.v as v3, d.v as v4 from s.t a join s.t b on a.up = b.id join s.t c on b.up = c.id"
        " join s.t d on c.up = d.id"
    )
    assert parts(sql, tree) == ["t", "t m__ivm_aux_1"]
    sql = (
        "select a.id, x.w, y.w as w2 from s.a a join s.b b on a.b = b.id join s.c x on b.c = x.id"
        " join s.b b2 on a.id = b2.id join s.c y on b2.c = y.id"
    )
    assert parts(sql, A, B, C) == ["b c", "b c"]


def test_what_the_model_does_not_read_is_not_kept() -> None:
    (part,) = compile_view(CHAIN, Catalog.of([A, B, C]), Options(auxiliary="subtrees"), facade=FACADE).auxiliary
    assert part.view.layout.stored == ("b_id", "b_v", "c_w")
    narrow = CHAIN.replace("b.v, ", "")
    (part,) = compile_view(narrow, Catalog.of([A, B, C]), Options(auxiliary="subtrees"), facade=FACADE).auxiliary
    assert part.view.layout.stored == ("b_id", "c_w")


def test_the_guard_knows_what_auxiliary_views_have_consumed() -> None:
    class Reader:
        def stored(self, name: RelationName) -> Stored:
            seen = {
                "db.m__ivm": {"s.a": 7, "db.m__ivm_aux_2": 5},
                "db.m__ivm_aux_2": {"s.b": 4, "db.m__ivm_aux_1": 3},
                "db.m__ivm_aux_1": {"s.c": 2},
                "db.n__ivm": {"s.b": 3},
            }[str(name)]
            sources = {table: SourceState(version, "") for table, version in seen.items()}
            return Stored(None, "", 0, State(1, "", sources))

    readers = [RelationName.parse(n) for n in ("db.m__ivm", "db.n__ivm")]
    assert [oldest_version(Reader(), t, readers) for t in (A, B, C)] == [7, 3, 2]  # type: ignore[arg-type]


def test_explain_and_json_show_auxiliary_views() -> None:
    plan = plan_view(CHAIN, [A, B, C], model="db.m", changes={"s.c": (1, 2)}, options={"auxiliary": "subtrees"})
    told = plan.explain()
    assert "auxiliary view, refreshed before: db.m__ivm_aux_1" in told
    assert "Changes of db.m__ivm_aux_1 versions 2 to 2" in told
    assert '"storage": "db.m__ivm_aux_1"' in plan.to_json()
    quiet = plan_view(CHAIN, [A, B, C], model="db.m", changes={"s.a": (1, 2)}, options={"auxiliary": "subtrees"})
    assert quiet.auxiliary[0].strategy == "none" and quiet.strategy == "incremental"

"""The views V2 to V7 of the paper on outer joins on real Delta: net supplements are used, and rows are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt_ivm.optimizer import Verdict, judged
from dbt_ivm.refresh.apply import context
from tests.spark.project import Project

R, S, T, W = (f"{{{{ source('raw','{name}') }}}} {name}" for name in "rstw")

MODELS = {
    "v2": f"select r.id, t.id as t_id, s.b as s_b from {R} left join {T} on r.a = t.a full join {S} on t.b = s.b",
    "v3": f"select r.a, coalesce(t.b, s.b) as b, s.id as s_id from {R} full join {T} on r.a = t.a full join {S} on t.b = s.b",
    "v4": (
        f"select r.id, st.b, w.id as w_id from {R} left join (select s.id as s_id, t.id as t_id, s.a, t.b from {S}"
        f" join {T} on s.b = t.b) st on r.a = st.a and r.b >= st.b join {W} on r.b = w.b"
    ),
    "v5": (
        f"select r.id, st.s_id, st.t_a is null as alone from {R} left join (select s.id as s_id, s.a, t.a as t_a from {S}"
        f" left join {T} on s.b = t.b) st on r.a = st.a"
    ),
    "v6": f"select r.id, s.b, t.b as t_b from {R} left join {S} on r.a = s.a left join {T} on r.b = t.b where r.a < 9",
    "v7": (
        f"select r.id, t.id as t_id, sw.s_id, sw.w_b from {R} full join {T} on r.a = t.a"
        f" full join (select s.id as s_id, s.b, w.b as w_b from {S} left join {W} on s.a = w.a) sw on t.b = sw.b"
    ),
}
MODELS["v7_logged"] = MODELS["v7"]


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What refreshes note about outer joins."""
    found: list[str] = []

    def listened(*arguments: object) -> Verdict:
        verdict = judged(*arguments)  # type: ignore[arg-type]
        found.append(verdict.note)
        return verdict

    monkeypatch.setattr(context, "judged", listened)
    return found


def test_views_of_the_paper(tmp_path: Path, notes: list[str]) -> None:
    shop = Project(tmp_path)
    key = [{"name": "id", "constraints": [{"type": "primary_key"}]}]
    rows = {
        "r": "(1,1,1),(2,1,2),(3,2,null),(4,null,1),(5,7,7)",
        "s": "(1,1,1),(2,1,3),(3,2,2),(4,null,null),(5,8,1)",
        "t": "(1,1,1),(2,2,1),(3,2,2),(4,null,2),(5,5,null)",
        "w": "(1,1,1),(2,1,2),(3,3,3),(4,null,1)",
    }
    for name, values in rows.items():
        shop.source(name, "id bigint, a int, b int", values, columns=key)
    for name, query in MODELS.items():
        apply = "log" if name == "v7_logged" else "auto"
        shop.model(name, query, meta={"ivm": {"apply": apply, "refresh": "strict"}})
    assert {r["strategy"] for r in shop.run().values()} == {"create"}

    def refresh(*statements: str) -> set[str]:
        notes.clear()
        for statement in statements:
            shop.sql(statement.replace("@", f"{shop.schema}."))
        results = shop.run()
        ways = {name: "log by key" if name == "v7_logged" else "merge by key" for name in MODELS}
        assert {n: r["strategy"] for n, r in results.items()} == dict.fromkeys(MODELS, "incremental")
        assert {n: r["way"] for n, r in results.items()} == ways
        for name in MODELS:
            shop.assert_equal(name)
        return set(notes)

    told = refresh(  # the table in the middle: last matches go, first ones come, and some move
        "delete from @t where id in (1, 3)",
        "insert into @t values (6,7,1),(7,null,null),(8,1,3)",
        "update @t set a = 2, b = 3 where id = 4",
    )
    of_t = ("net supplements for t: ", "net supplements for a subquery")  # v4 joins s and t in one
    assert told and all(note.startswith(of_t) for note in told), told
    told = refresh(  # all tables at once
        "delete from @r where id = 1",
        "insert into @r values (6,5,5),(7,2,1)",
        "update @s set a = 2, b = null where id = 1",
        "insert into @s values (6,7,7)",
        "delete from @t where id = 6",
        "insert into @t values (1,1,1),(9,5,7)",
        "update @w set b = 5 where id = 1",
        "delete from @w where id = 3",
    )
    assert any(note.startswith("net supplements for ") for note in told), told

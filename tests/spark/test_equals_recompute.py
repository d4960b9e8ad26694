"""The generic test is red for one extra, one missing and one duplicated row, and understands floats, maps and where."""

from __future__ import annotations

from tests.spark.project import Project


def outcome(project: Project, expect_success: bool) -> dict[str, str]:
    results = project.dbt("test", expect_success=expect_success)
    return {name.split("recompute_")[1].split("_")[0]: r["status"] for name, r in results.items()}


def test_red_and_green(project: Project) -> None:
    p, s = project, project.schema
    p.source(
        "orders",
        "id bigint, v int, d double, m map<string,int>",
        "(1,1,0.1,map('a',1,'b',2)),(2,2,0.2,null),(2,2,0.2,null)",
    )
    source = "{{ source('raw','orders') }}"
    p.model("extra", f"select id, v from {source}")
    p.model("missing", f"select id, v from {source}")
    p.model("doubled", f"select id, v from {source}")
    p.model("swapped", f"select id, v from {source}")
    p.model("where", f"select id, v from {source}")
    p.model("floats", f"select id, d from {source}")
    p.model("maps", f"select id, m from {source}")
    test = "dbt_ivm.equals_recompute"
    p.write("models/schema.yml", {"version": 2, "models": [
        *({"name": n, "data_tests": [test]} for n in ("extra", "missing", "doubled", "swapped", "maps")),
        {"name": "where", "data_tests": [{test: {"config": {"where": "id = 1"}}}]},
        {"name": "floats", "data_tests": [{test: {"tolerance": 1e-9}}]},
    ]})  # fmt: skip
    results = p.run()
    assert results["maps"]["strategy"] == "create" and not results["maps"]["reason"]
    names = ("extra", "missing", "doubled", "swapped", "where", "floats", "maps")
    assert outcome(p, True) == dict.fromkeys(names, "pass")

    p.sql(f"insert into {s}.extra__ivm (id, v, __ivm_part, __ivm_seq, __ivm_row) values (9, 9, 0, 1, 77)")
    p.sql(f"delete from {s}.missing__ivm where id = 1")
    p.sql(f"insert into {s}.doubled__ivm select * from {s}.doubled__ivm where id = 1")
    # same set, same number of rows, other multiplicities
    last = p.sql(f"select max(__ivm_row) as n from {s}.swapped__ivm where id = 2")[0].n
    p.sql(f"delete from {s}.swapped__ivm where id = 2 and __ivm_row = {last}")
    p.sql(f"insert into {s}.swapped__ivm select * from {s}.swapped__ivm where id = 1")
    p.sql(f"delete from {s}.where__ivm where id = 2")
    p.sql(f"update {s}.floats__ivm set d = d + 1e-12 where __ivm_part = 0")
    p.sql(f"update {s}.maps__ivm set m = map('b', 2, 'a', 1) where id = 1")
    assert outcome(p, False) == {
        "extra": "fail", "missing": "fail", "doubled": "fail", "swapped": "fail",
        "where": "pass", "floats": "pass", "maps": "pass",
    }  # fmt: skip
    p.sql(f"update {s}.floats__ivm set d = d + 1e-3 where id = 1")
    p.sql(f"update {s}.maps__ivm set m = map('b', 3, 'a', 1) where id = 1")
    red = outcome(p, False)
    assert red["floats"] == red["maps"] == "fail"

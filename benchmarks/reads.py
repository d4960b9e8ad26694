"""Rows that a refresh reads for ten changed rows, operator by operator: the page ``results/reads.md``.

    python -m benchmarks.reads [--rows 1000000] [--only "FULL JOIN"]

Two keyed tables: ``fact`` (a million rows) and ``dim`` (a tenth).  Ten rows of one of them change: four updated, three
deleted, three inserted.  *Rows read* are Spark's input records of the whole refresh, reads of the view's own table
among them; *scans* is that number over the rows of both tables.  Every result is compared with its query.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.dbt_project import DbtProject
from benchmarks.equality import difference
from benchmarks.markdown import seconds, short, table
from benchmarks.results import DEFAULT_FOLDER, machine, machine_line
from benchmarks.session import spark_session
from benchmarks.stages import Stages

FACT, DIM = "{{ source('raw', 'fact') }}", "{{ source('raw', 'dim') }}"

MODELS = {
    "LEFT JOIN": f"select f.id, f.amount, d.name from {FACT} f left join {DIM} d on f.dim_id = d.id",
    "two LEFT JOINs": (
        f"select f.id, d.name, e.name as other from {FACT} f left join {DIM} d on f.dim_id = d.id"
        f" left join {DIM} e on f.other_id = e.id"
    ),
    "LEFT JOIN, many matches": (
        f"select d.id, d.name, f.id as fact_id from {DIM} d left join {FACT} f on f.dim_id = d.id"
    ),
    "FULL JOIN": f"select d.id, d.name, f.id as fact_id from {DIM} d full join {FACT} f on f.dim_id = d.id",
    "EXISTS": (
        f"select d.id, d.name from {DIM} d"
        f" where exists (select 1 from {FACT} f where f.dim_id = d.id and f.amount > 90)"
    ),
    "NOT EXISTS": f"select d.id from {DIM} d where not exists (select 1 from {FACT} f where f.dim_id = d.id)",
    "scalar subquery": f"select d.id, (select max(f.amount) from {FACT} f where f.dim_id = d.id) as most from {DIM} d",
    "row_number() = 1": (
        f"select dim_id, id, amount from (select *, row_number() over (partition by dim_id order by amount desc, id)"
        f" as place from {FACT}) where place = 1"
    ),
    "running sum": f"select id, sum(amount) over (partition by dim_id order by id) as running from {FACT}",
    "running sum over everything": f"select id, sum(amount) over (order by id) as running from {FACT}",
    "ORDER BY, LIMIT 10": f"select id, amount from {FACT} order by amount desc, id limit 10",
    "COUNT(DISTINCT)": f"select dim_id, count(distinct amount) as amounts from {FACT} group by dim_id",
    "nested aggregate": (
        f"select n, count(*) as dims from (select dim_id, count(*) as n from {FACT} group by dim_id) group by n"
    ),
    "INTERSECT": f"select dim_id as id from {FACT} intersect select id from {DIM}",
}

#: The same views, for comparison.
WITHOUT = ", net_supplements off"
MODELS |= {title + WITHOUT: MODELS[title] for title in ("LEFT JOIN, many matches", "FULL JOIN")}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reads", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the larger table")
    parser.add_argument("--only", default="", help="views whose title has this; the page is then not written")
    given = parser.parse_args()
    for title in [t for t in MODELS if given.only not in t]:
        del MODELS[title]
    with tempfile.TemporaryDirectory(prefix="ivm_reads_", ignore_cleanup_errors=True) as folder:
        rows = measure(Path(folder), given.rows)
    if given.only:
        print(report(rows, given.rows))
        return
    page = DEFAULT_FOLDER / "reads.md"
    page.write_text(report(rows, given.rows))
    print(f"wrote {page.name}")


def measure(folder: Path, size: int) -> list[dict[str, Any]]:
    spark = spark_session(folder / "warehouse")
    spark.sql("create database reads")
    feed = "using delta tblproperties (delta.enableChangeDataFeed = true)"
    spark.sql(
        f"create table reads.fact {feed} as select id, id % {size // 10} as dim_id,"
        f" (id * 7) % {size // 10} as other_id, cast(id % 97 as decimal(10,2)) as amount from range({size})"
    )
    spark.sql(f"create table reads.dim {feed} as select id, concat('d', id % 50) as name from range({size // 10})")
    key = [{"name": "id", "constraints": [{"type": "primary_key"}]}]
    project = DbtProject(folder / "project", "reads", [{"name": n, "columns": key} for n in ("fact", "dim")])
    names = {title: f"m{number}" for number, title in enumerate(MODELS)}
    project.write({f"models/{names[title]}.sql": head(title) + sql for title, sql in MODELS.items()})
    stages, found = Stages(spark), []
    for title, name in names.items():
        print(f"building {title}")
        project.run(name)
    for table_name in ("fact", "dim"):
        change(spark, table_name, size if table_name == "fact" else size // 10)
        for title, name in names.items():
            if f"'{table_name}'" not in MODELS[title]:
                continue
            stages.take()
            result = project.run(name)
            work = stages.take()
            ivm = result["adapter_response"]["ivm"]
            query = MODELS[title].replace(FACT, "reads.fact").replace(DIM, "reads.dim")
            columns = spark.table(f"reads.{name}").columns
            wrong = difference(lambda sql: list(spark.sql(sql).collect()), columns, f"reads.{name}", f"({query})")
            found.append(
                {
                    "title": title,
                    "table": table_name,
                    "way": ivm["way"],
                    "read": work.rows_read,
                    "seconds": float(result["execution_time"]),
                    "strategy": ivm["strategy"],
                    "wrong": wrong,
                }
            )
            print(f"{title}, ten rows of {table_name}: {found[-1]}")
    return found


def head(title: str) -> str:
    off = ", 'rules_off': ['net_supplements']" if title.endswith(WITHOUT) else ""
    return "{{ config(materialized='incremental_ivm', meta={'ivm': {'refresh': 'strict'" + off + "}}) }}\n"


def change(spark: Any, name: str, size: int) -> None:
    """Ten rows all over the table."""
    picked = [size // 11 * n + 5 for n in range(1, 8)]
    what = "amount = amount + 1" if name == "fact" else "name = concat(name, '!')"
    spark.sql(f"update reads.{name} set {what} where id in ({', '.join(map(str, picked[:4]))})")
    spark.sql(f"delete from reads.{name} where id in ({', '.join(map(str, picked[4:]))})")
    values = "id + 1, 5, 6, 1.5" if name == "fact" else "id + 1, 'new'"
    spark.sql(f"insert into reads.{name} select {values.replace('id', f'id + {size}', 1)} from range(3)")


def report(rows: list[dict[str, Any]], size: int) -> str:
    both = size + size // 10
    lines = [
        [
            r["title"],
            r["table"],
            r["way"],
            short(r["read"]),
            f"{r['read'] / both:.2f}",
            seconds(r["seconds"]),
            "yes" if not r["wrong"] and r["strategy"] == "incremental" else "NO",
        ]
        for r in rows
    ]
    header = ["view", "ten rows of", "way", "rows read", "scans", "seconds", "incremental and equal"]
    about = (__doc__ or "").split("\n\n", 2)[2].replace("``", "`").strip()
    return f"# Rows read for ten changed rows\n\n{machine_line([machine()])}\n\n{about}\n\n{table(header, lines)}\n"


if __name__ == "__main__":
    main()

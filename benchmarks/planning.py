"""How long planning takes: CPU milliseconds for models of growing size, warm, in one process.

*first* is the first plan of a model in a process, *again* a later one: its compiled view is remembered.

python -m benchmarks.planning [repetitions]
"""

from __future__ import annotations

import statistics
import sys
from time import process_time

from dbt_ivm.api import plan_view, table
from dbt_ivm.refresh.view import compile_view

DIMENSIONS = 5
TABLES = [
    table("shop.fact", {"id": "bigint", "amount": "decimal(12,2)"} | {f"d{i}": "bigint" for i in range(5)}, ["id"]),
    *(table(f"shop.dim{i}", {"id": "bigint", "name": "string", "extra": "string"}, ["id"]) for i in range(DIMENSIONS)),
]  # fmt: skip
JOINS = " ".join(f"join shop.dim{i} d{i} on f.d{i} = d{i}.id" for i in range(DIMENSIONS))
NAMES = ", ".join(f"d{i}.name as name{i}" for i in range(DIMENSIONS))
MODELS = {
    "1 table, sum": "select d0, sum(amount) as total from shop.fact group by d0",
    "6 tables, join": f"select f.id, f.amount, {NAMES} from shop.fact f {JOINS}",
    "6 tables, sum and min": (
        f"select d0.name, sum(f.amount) as total, min(f.amount) as low from shop.fact f {JOINS} group by 1"
    ),
}
CHANGES = {"nothing but the fact": ["shop.fact"], "all tables": [str(t.name) for t in TABLES]}


def main(repetitions: int = 30) -> None:
    print(f"{'model':24} {'changed':22} {'first ms':>10} {'again ms':>10}   (medians)")
    for model, sql in MODELS.items():
        for label, changed in CHANGES.items():
            times: dict[str, list[float]] = {"first": [], "again": []}
            for _ in range(repetitions):
                compile_view.cache_clear()
                for which in times:
                    start = process_time()
                    plan_view(sql, TABLES, changes={name: (1, 2) for name in changed if name[5:] in sql})
                    times[which].append(1000 * (process_time() - start))
            first, again = (statistics.median(t) for t in times.values())
            print(f"{model:24} {label:22} {first:10.1f} {again:10.1f}")


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:2]))

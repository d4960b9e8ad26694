"""Is a view the same bag as the table rebuilt from the same sources?"""

from __future__ import annotations

from benchmarks.apply.project import Project


class Differs(AssertionError):
    pass


def checksum(project: Project, relation: str) -> tuple[object, ...]:
    """Rows, sum and XOR of their hashes: two sums of 64 bits that agree by chance once in 10^19 bags or less often."""
    columns = ", ".join(project.columns)
    (row,) = project.tables.sql(
        "select count(*), sum(cast(h as decimal(38,0))), bit_xor(h)"
        f" from (select xxhash64({columns}) as h from {relation})"
    )
    return tuple(row)


def reference(project: Project, is_rebuilt: bool) -> str:
    """What views are compared with: the rebuilt table when it is fresh, else the query itself."""
    return project.relation("rebuild") if is_rebuilt else f"({project.query()})"


def difference(project: Project, way: str, other: str) -> str:
    """A row that only one of the two has, by EXCEPT ALL both ways; empty when there is none."""
    columns = ", ".join(project.columns)
    one, two = f"select {columns} from {project.relation(way)}", f"select {columns} from {other}"
    for left, right, side in ((one, two, "too many"), (two, one, "missing")):
        rows = project.tables.sql(f"select * from ({left} except all {right}) limit 1")
        if rows:
            return f"{side}: {rows[0]}"
    return ""

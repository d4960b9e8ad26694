"""UNPIVOT: a row per entry of its list, by one scan.

    t UNPIVOT (v FOR n IN (a, b AS 'x'))
    →  SELECT …, CASE place WHEN 1 THEN 'a' WHEN 2 THEN 'x' END AS n, CASE place WHEN 1 THEN a WHEN 2 THEN b END AS v
       FROM t LATERAL VIEW explode(sequence(1, 2)) AS place
       WHERE v IS NOT NULL                                       -- unless INCLUDE NULLS; of several values: some is not

The place makes a key of the row together with the key of ``t``.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.generators import chosen, numbered
from dbt_ivm.frontend.lower import Lowering, Rows
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.frontend.scope import Scope
from dbt_ivm.operators import Filter, Project, Projection, col
from dbt_ivm.types import widest


def lower_unpivot(lowering: Lowering, rows: Rows, alias: str, pivot: exp.Pivot) -> Rows:
    line = line_of(pivot)
    fields = pivot.args.get("fields") or []
    (target,) = pivot.expressions
    targets = target.expressions if isinstance(target, exp.Tuple) else [target]
    if len(fields) != 1 or not all(isinstance(e, exp.PivotAlias) for e in fields[0].expressions):
        raise Refusal("unparsable", "UNPIVOT", line)
    scope = Scope(lowering, line)
    scope.plan = scope.add(alias, rows)
    known = dict(rows.outputs)
    entries = [_columns(e.this, known, line) for e in fields[0].expressions]
    if any(len(entry) != len(targets) for entry in entries):
        raise Refusal("unparsable", "UNPIVOT", line)
    used = {c for entry in entries for c in entry}
    kept = [(name, column) for name, column in rows.outputs if column not in used]

    plan, place = numbered(scope, len(entries))
    labels = [exp.Literal.string(e.args["alias"].name) for e in fields[0].expressions]
    made = [(fields[0].this.name, chosen(place, labels))]
    for position, value in enumerate(targets):
        columns = [entry[position] for entry in entries]
        made.append((value.name, chosen(place, [col(c) for c in columns], _common(scope, columns))))
    shown = [(name, lowering.fresh(f"p_{name}"), e) for name, e in [*((n, col(c)) for n, c in kept), *made]]
    plan = Project(plan, (*(Projection(c, e) for _, c, e in shown), Projection(place, col(place))))
    if not pivot.args.get("include_nulls"):
        values = [col(column) for _, column, _ in shown[-len(targets) :]]
        present = [exp.Not(this=exp.Is(this=v, expression=exp.Null())) for v in values]
        plan = Filter(plan, exp.or_(*present))
    return Rows(plan, tuple((name, column) for name, column, _ in shown))


def _columns(entry: exp.Expr, known: dict[str, str], line: int | None) -> list[str]:
    listed = entry.expressions if isinstance(entry, exp.Tuple) else [entry]
    if not all(isinstance(c, exp.Column) and c.name in known for c in listed):
        raise Refusal("unparsable", f"UNPIVOT of {entry.sql(dialect='spark')}", line)
    return [known[c.name] for c in listed]


def _common(scope: Scope, columns: list[str]) -> str:
    """The type of a value column when its entries differ; "" when there is nothing to cast."""
    kinds = [scope.plan.types[c] for c in columns]
    return widest(kinds) if len(set(kinds)) > 1 else ""

"""PIVOT: one column per value and aggregate, grouped by all columns that it does not mention.

    t PIVOT (sum(x) FOR k IN (1 AS a, 2 AS b))
    →  SELECT …, sum(x) FILTER (WHERE k <=> 1) AS a, sum(x) FILTER (WHERE k <=> 2) AS b FROM t GROUP BY …

A value without rows gives NULL, for COUNT too: that is Spark's PIVOT.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.lower import Lowering, Rows
from dbt_ivm.frontend.lower_aggregate import lower_aggregate
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.frontend.scope import Scope
from dbt_ivm.operators import Project, Projection, col


def lower_pivot(lowering: Lowering, rows: Rows, alias: str, pivot: exp.Pivot) -> Rows:
    line = line_of(pivot)
    fields = pivot.args.get("fields") or []
    if pivot.args.get("unpivot") or len(fields) != 1 or not isinstance(fields[0].this, exp.Column):
        raise Refusal("pivot", "", line)
    scope = Scope(lowering, line)
    scope.plan = scope.add(alias, rows)
    tested = scope.resolve(fields[0].this)
    calls = [scope.resolve(e.unalias()) for e in pivot.expressions]
    values = [v.this if isinstance(v, exp.PivotAlias) else v for v in fields[0].expressions]
    names = [c.name for c in pivot.args.get("columns") or ()]
    if len(names) != len(values) * len(calls) or any(isinstance(v, exp.Tuple) for v in values):
        raise Refusal("pivot", "", line)
    used = {c.name for e in (tested, *calls) for c in e.find_all(exp.Column)}
    keys = [(name, col(column)) for name, column in rows.outputs if column not in used]
    cells = [_cell(tested, scope.resolve(value), call) for value in values for call in calls]
    outputs: list[tuple[str, exp.Expr]] = [*keys, *zip(names, cells, strict=True)]
    plan, rewritten, _ = lower_aggregate(lowering, scope.plan, [e for _, e in keys], outputs, None, bool(keys))
    shown = [(name, lowering.fresh(f"p_{name}"), e) for name, e in rewritten]
    return Rows(
        Project(plan, tuple(Projection(column, e) for _, column, e in shown)),
        tuple((name, column) for name, column, _ in shown),
    )


def _cell(tested: exp.Expr, value: exp.Expr, call: exp.Expr) -> exp.Expr:
    """The aggregate of one value's rows, or NULL when there are none."""
    is_it = exp.NullSafeEQ(this=tested.copy(), expression=value)
    chosen = exp.Filter(this=call.copy(), expression=exp.Where(this=is_it))
    rows = exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=is_it.copy()))
    some = exp.GT(this=rows, expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=some, true=chosen)])

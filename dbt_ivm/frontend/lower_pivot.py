"""PIVOT: one column per value and aggregate, grouped by all columns that it does not mention.

    t PIVOT (sum(x) FOR k IN (1 AS a, 2 AS b))
    →  SELECT …, sum(x) FILTER (WHERE k <=> 1) AS a, sum(x) FILTER (WHERE k <=> 2) AS b FROM t GROUP BY …

FOR (k, l) IN ((1, 2) AS a) compares both.  A value without rows gives NULL, for COUNT too: that is Spark's PIVOT.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import nodes
from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.lower import Lowering, Rows
from dbt_ivm.frontend.lower_aggregate import lower_aggregate
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.frontend.scope import Scope
from dbt_ivm.operators import Project, Projection, col
from dbt_ivm.types import infer, is_integral


def lower_pivot(lowering: Lowering, rows: Rows, alias: str, pivot: exp.Pivot) -> Rows:
    line = line_of(pivot)
    fields = pivot.args.get("fields") or []
    if len(fields) != 1:
        raise Refusal("unparsable", "PIVOT", line)
    scope = Scope(lowering, line)
    scope.plan = scope.add(alias, rows)
    tested = [scope.resolve(t) for t in _parts(fields[0].this)]
    calls = [scope.resolve(e.unalias()) for e in pivot.expressions]
    listed = [v.this if isinstance(v, exp.PivotAlias) else v for v in fields[0].expressions]
    found = [infer(t, scope.plan.types) for t in tested]
    kinds = ["string" if "char(" in kind else kind for kind in found]
    if any(len(_parts(v)) != len(tested) for v in listed):
        raise Refusal("unparsable", "PIVOT", line)
    values = [[_of_type(scope, scope.resolve(p), k) for p, k in zip(_parts(v), kinds, strict=True)] for v in listed]
    apart = {tuple(_told_apart(p, k) for p, k in zip(v, kinds, strict=True)) for v in values}
    if len(apart) < len(values):  # Spark fills neither column
        raise Refusal("pivot", "the same value twice", line)
    names = [c.name.lower() for c in pivot.args.get("columns") or ()]
    if len(names) != len(values) * len(calls):
        raise Refusal("unparsable", "PIVOT", line)
    used = {c.name for e in (*tested, *calls) for c in e.find_all(exp.Column)}
    keys = [(name, col(column)) for name, column in rows.outputs if column not in used]
    cells = [_cell(tested, value, call) for value in values for call in calls]
    outputs: list[tuple[str, exp.Expr]] = [*keys, *zip(names, cells, strict=True)]
    plan, rewritten, _ = lower_aggregate(lowering, scope.plan, [e for _, e in keys], outputs, None, bool(keys))
    shown = [(name, lowering.fresh(f"p_{name}"), e) for name, e in rewritten]
    return Rows(
        Project(plan, tuple(Projection(column, e) for _, column, e in shown)),
        tuple((name, column) for name, column, _ in shown),
    )


def _parts(node: exp.Expr) -> list[exp.Expr]:
    while isinstance(node, exp.Paren):
        node = node.this
    return node.expressions if isinstance(node, exp.Tuple) else [node]


def _of_type(scope: Scope, value: exp.Expr, kind: str) -> exp.Expr:
    """A value as one of the column's type, which is what Spark compares."""
    own = infer(value, {})
    if kind:
        return value if own == kind or isinstance(value, exp.Null) else nodes.cast(value, kind)
    if own in ("string", "void") or isinstance(value, exp.Null):  # the comparison casts it to the type of the column
        return value
    raise Refusal("pivot", f"{scope.text(value)} compared with a column of unknown type", line_of(value))


def _told_apart(value: exp.Expr, kind: str) -> str:
    """Equal for equal values."""
    literal = value.find(exp.Literal)
    try:
        number = float(literal.name) if literal is not None and kind != "string" else None
    except ValueError:
        number = None
    if number is None:
        return value.sql()
    number = -number if value.find(exp.Neg) is not None else number
    return str(int(number) if is_integral(kind) else number)


def _cell(tested: list[exp.Expr], value: list[exp.Expr], call: exp.Expr) -> exp.Expr:
    """The aggregate of one value's rows, or NULL when there are none."""
    pairs = zip(tested, value, strict=True)
    is_it = exp.and_(*(exp.NullSafeEQ(this=t.copy(), expression=v.copy()) for t, v in pairs))
    chosen = exp.Filter(this=call.copy(), expression=exp.Where(this=is_it))
    rows = exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=is_it.copy()))
    some = exp.GT(this=rows, expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=some, true=chosen)])

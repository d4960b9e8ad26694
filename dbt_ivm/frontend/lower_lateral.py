"""LATERAL (q): the rows of q for each row of FROM so far, as subqueries in expressions are lowered.

t, LATERAL (SELECT x FROM u WHERE u.k = t.k)                  t ⋈ u on u.k = t.k
t LEFT JOIN LATERAL (…) ON c                                  t ⟕ u on u.k = t.k and c
t, LATERAL (SELECT count(*) AS n FROM u WHERE u.k = t.k)      t ⟕ γk(u): one row each, also over no rows
ORDER BY … LIMIT n, windows, set operations, … inside         per distinct values of t (given.py)
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.generators import lateral_view
from dbt_ivm.frontend.lower_subquery import inner_rows, keep_rows, one_group
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.frontend.scope import Scope
from dbt_ivm.nodes import conjuncts
from dbt_ivm.operators import Filter, Join, LeftJoin, Project, Projection, col, references


def lower_lateral(scope: Scope, join: exp.Join, words: set[str]) -> None:
    """Extends the scope's plan by the join."""
    lateral, on, is_left = join.this, join.args.get("on"), "LEFT" in words
    if words & {"RIGHT", "FULL", "SEMI", "ANTI", "NATURAL"}:
        raise Refusal("lateral", f"{' '.join(sorted(words))} JOIN LATERAL", line_of(join) or scope.line)
    if is_left and on is not None and on.find(exp.Query):
        raise Refusal("subquery", "in the condition of an outer join", line_of(join))
    if not isinstance(lateral.this, exp.Subquery):
        if is_left and on is not None and on != exp.true():
            raise Refusal("lateral", "LEFT JOIN of a generator on a condition", line_of(join) or scope.line)
        scope.plan = lateral_view(scope, lateral, outer=is_left)
        _keep(scope, None if is_left else on)
        return
    query = lateral.this.this
    while isinstance(query, exp.Subquery):
        query = query.this
    shown = _output_names(lateral, query)
    whole = one_group(scope, query)
    if whole is not None:
        _one_row(scope, lateral.alias, shown, *whole)
        if is_left and on is not None:
            _only_where(scope, lateral.alias, shown, on)
            return
    else:
        inner = inner_rows(scope, query, items=False)
        columns = [scope.lowering.fresh(f"{lateral.alias}_{n}") for n in shown]
        used = {n for p in inner.predicates for n in references(p)}
        kept = [Projection(n, col(n)) for n in inner.plan.column_names if n in used]
        values = [Projection(c, v) for c, v in zip(columns, inner.values, strict=True)]
        rows = Project(inner.plan, (*kept, *values))
        before = scope.plan
        for name, column in zip(shown, columns, strict=True):
            scope.columns[(lateral.alias, name)] = column
        if is_left:
            conditions = conjuncts(scope.resolve(on)) if on is not None else []
            if scope.plan is not before:  # the clock
                raise Refusal("lateral", "LEFT JOIN LATERAL on the date or the time", line_of(join) or scope.line)
            scope.plan = LeftJoin(before, rows, (*inner.predicates, *conditions))
            return
        scope.plan = Join((before, rows), inner.predicates)
    _keep(scope, on)


def _keep(scope: Scope, condition: exp.Expr | None) -> None:
    if condition is not None:
        left = keep_rows(scope, condition)
        scope.plan = Filter(scope.plan, exp.and_(*left)) if left else scope.plan


def _output_names(lateral: exp.Lateral, query: exp.Expr) -> list[str]:
    alias = lateral.args["alias"]
    first = query
    while isinstance(first, (exp.SetOperation, exp.Subquery)):
        first = first.this
    return [c.name for c in alias.columns] or [s.alias_or_name for s in first.selects]  # type: ignore[attr-defined]


def _one_row(scope: Scope, alias: str, shown: list[str], inner: object, empty: list[exp.Expr]) -> None:
    from dbt_ivm.frontend.lower_subquery import with_values

    values = with_values(scope, inner, empty)  # type: ignore[arg-type]
    columns = [scope.lowering.fresh(f"{alias}_{n}") for n in shown]
    kept = tuple(Projection(n, col(n)) for n in scope.plan.column_names)
    made = tuple(Projection(c, v) for c, v in zip(columns, values, strict=True))
    scope.plan = Project(scope.plan, kept + made)
    for name, column in zip(shown, columns, strict=True):
        scope.columns[(alias, name)] = column


def _only_where(scope: Scope, alias: str, shown: list[str], on: exp.Expr) -> None:
    """LEFT JOIN of one row: NULLs where the condition does not hold."""
    condition = scope.resolve(on)
    kept = [Projection(n, col(n)) for n in scope.plan.column_names]
    for name in shown:
        column = scope.lowering.fresh(f"{alias}_{name}")
        chosen = exp.Case(ifs=[exp.If(this=condition.copy(), true=col(scope.columns[(alias, name)]))])
        kept.append(Projection(column, chosen))
        scope.columns[(alias, name)] = column
    scope.plan = Project(scope.plan, tuple(kept))

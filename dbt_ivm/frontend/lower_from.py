"""FROM: tables, subqueries, inline values, joins of every kind, LATERAL VIEW."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.clocks import asks_the_clock
from dbt_ivm.frontend.generators import generated, lateral_view
from dbt_ivm.frontend.given import Given
from dbt_ivm.frontend.joined_columns import USING
from dbt_ivm.frontend.lower import Rows
from dbt_ivm.frontend.lower_lateral import lower_lateral
from dbt_ivm.frontend.lower_pivot import lower_pivot
from dbt_ivm.frontend.lower_subquery import keep_rows
from dbt_ivm.frontend.lower_unpivot import lower_unpivot
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.frontend.scope import Scope
from dbt_ivm.nodes import conjuncts
from dbt_ivm.operators import (
    Existence,
    Filter,
    FullJoin,
    Join,
    Kind,
    LeftJoin,
    OneRow,
    Operator,
    Project,
    Projection,
    UnionAll,
    col,
    references,
)


def lower_from(scope: Scope, select: exp.Select, given: Given | None = None) -> list[exp.Expr]:
    """Sets the scope's plan; returns conditions of inner joins that use columns of an enclosing query.

    Args:
        given: rows of values of an enclosing query, which every row is joined with.
    """
    from_, joins = select.args.get("from_"), select.args.get("joins") or ()
    correlated: list[exp.Expr] = []
    if from_ is None:
        scope.plan = given.plan if given is not None else scope.plan
        return correlated
    given_last = any(j.side.upper() in ("RIGHT", "FULL") for j in joins)
    first = [given.plan] if given is not None and not given_last else []
    members, predicates = [*first, _source(scope, from_.this)], list[exp.Expr]()

    def joined() -> Operator:
        """The inner joins so far."""
        return members[0] if len(members) == 1 and not predicates else Join(tuple(members), tuple(predicates))

    for join in joins:
        scope.subqueries.clear()  # of rows before the join, which may be rows of NULLs after it
        words = set(f"{join.method} {join.side} {join.kind}".upper().split())
        if isinstance(join.this, exp.Lateral):
            scope.plan = joined()
            lower_lateral(scope, join, words)
            members, predicates = [scope.plan], []
            continue
        _refuse_join(join, words)
        right = _source(scope, join.this)
        on = join.args.get("on")
        conditions = conjuncts(on) if on is not None else []
        scope.shares_columns |= on is not None and bool(on.meta.get(USING))
        is_outer = bool(words & {"LEFT", "RIGHT", "FULL", "SEMI", "ANTI"})
        asking = [c for c in conditions if c.find(exp.Query) or (asks_the_clock(c) and not is_outer)]
        scope.plan = joined()
        found = [p for c in conditions if c not in asking for p in conjuncts(scope.resolve(c))]
        if is_outer:
            for condition in asking:
                right, mark = _of_one_side(scope, condition, right, join)
                found.append(mark)
            asking = []
            members, predicates = [scope.plan], []  # with the clock, if it was asked for
        have = {n for m in (*members, right) for n in m.column_names}
        outside = [p for p in found if not set(references(p)) <= have]
        if not is_outer:
            members.append(right)
            predicates += [p for p in found if p not in outside]
            correlated += outside
            if asking:  # as in WHERE
                scope.plan = joined()
                kept = keep_rows(scope, exp.and_(*asking))
                members, predicates = [filtered(scope.plan, kept)], []
            continue
        if outside:
            raise Refusal("subquery", f"{' '.join(sorted(words))} JOIN on columns of an outer query", line_of(join))
        members, predicates = [_outer(joined(), right, tuple(found), words)], []
        if words & {"SEMI", "ANTI"}:
            scope.hide(join.this.alias_or_name)
    scope.plan = joined()
    scope.subqueries.clear()
    if given is not None and given_last:
        scope.plan = Join((given.plan, scope.plan))
    for lateral in select.args.get("laterals") or ():
        scope.plan = lateral_view(scope, lateral)
    return correlated


def _of_one_side(scope: Scope, condition: exp.Expr, right: Operator, join: exp.Join) -> tuple[Operator, exp.Expr]:
    """A condition with a subquery, as a column of the only side whose columns it uses."""
    alias, used = join.this.alias_or_name, {c.table for c in condition.find_all(exp.Column)}
    on_left = bool(used & {table for table, _ in scope.columns if table != alias})
    if on_left and alias in used:
        raise Refusal("subquery", "with both sides in the condition of an outer join", line_of(join))
    side = scope
    if alias in used:
        side = Scope(scope.lowering, scope.line)
        side.plan = right
        side.columns = {key: column for key, column in scope.columns.items() if key[0] == alias}
    value, mark = side.resolve(condition), scope.lowering.fresh("holds")
    kept = tuple(Projection(n, col(n)) for n in side.plan.column_names)
    side.plan = Project(side.plan, (*kept, Projection(mark, value)))
    return (right if side is scope else side.plan), col(mark)


def _outer(left: Operator, right: Operator, on: tuple[exp.Expr, ...], words: set[str]) -> Operator:
    if "SEMI" in words or "ANTI" in words:
        return Existence(left, right, on, Kind.SEMI if "SEMI" in words else Kind.ANTI)
    if "FULL" in words:
        return FullJoin(left, right, on)
    if "RIGHT" in words:
        return Project.keeping(LeftJoin(right, left, on), (*left.column_names, *right.column_names))
    return LeftJoin(left, right, on)


def _refuse_join(join: exp.Join, words: set[str]) -> None:
    if "NATURAL" in words or join.args.get("using"):
        raise Refusal("unparsable", f"{' '.join(sorted(words))} JOIN", line_of(join))


def _source(scope: Scope, source: exp.Expr) -> Operator:
    lowering, alias = scope.lowering, source.alias
    if source.args.get("sample"):
        raise Refusal("sample", "", line_of(source))
    pivots = source.args.get("pivots") or []
    if pivots:
        plain = source.copy()
        plain.set("pivots", None)
        inside = Scope(lowering, scope.line)
        inside.plan = _source(inside, plain)
        rows = Rows(inside.plan, tuple((name, column) for (_, name), column in inside.columns.items()))
        for pivot in pivots:
            lower_one = lower_unpivot if pivot.args.get("unpivot") else lower_pivot
            rows = lower_one(lowering, rows, alias, pivot)
        return scope.add(pivots[-1].alias or alias, rows)
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        if source.name in lowering.ctes and source.name not in lowering.relations:
            return scope.add(alias, lowering.renamed(lowering.ctes[source.name], alias))
        return scope.add(alias, lowering.relation(source.name, alias))
    if isinstance(source, exp.Subquery):
        return scope.add(alias, lowering.renamed(lowering.query(source.this), alias))
    if isinstance(source, exp.Values):
        return scope.add(alias, _values(scope, source))
    if isinstance(source, (exp.Table, exp.Lateral)) and source.this is not None:
        inside = Scope(lowering, scope.line)
        plan = generated(inside, source.this, alias, [c.name for c in source.args["alias"].columns])
        scope.columns.update(inside.columns)
        return plan
    raise Refusal("lateral", scope.text(source), line_of(source) or scope.line)


def _values(scope: Scope, values: exp.Values) -> Rows:
    """An inline table: one constant row per tuple."""
    names = [c.name for c in values.args["alias"].columns] if values.args.get("alias") else []
    rows: list[Operator] = []
    for row in values.expressions:
        items = row.expressions if isinstance(row, exp.Tuple) else [row]
        names = names or [f"col{i}" for i, _ in enumerate(items, 1)]
        fresh = [scope.lowering.fresh(f"v_{n}") for n in names]
        constants = [scope.resolve(i) for i in items]
        rows.append(Project(OneRow(), tuple(Projection(f, i) for f, i in zip(fresh, constants, strict=True))))
    plan = rows[0] if len(rows) == 1 else UnionAll(tuple(rows))
    return Rows(plan, tuple(zip(names, plan.column_names, strict=True)))


def filtered(plan: Operator, conditions: list[exp.Expr]) -> Operator:
    return Filter(plan, exp.and_(*conditions)) if conditions else plan

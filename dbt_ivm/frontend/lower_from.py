"""FROM: tables, subqueries, inline values, joins of every kind, LATERAL VIEW."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.clocks import asks_the_clock
from dbt_ivm.frontend.lower import Rows
from dbt_ivm.frontend.lower_pivot import lower_pivot
from dbt_ivm.frontend.lower_subquery import keep_rows
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.frontend.scope import Scope
from dbt_ivm.nodes import conjuncts
from dbt_ivm.operators import (
    Column,
    Existence,
    Filter,
    FullJoin,
    Generate,
    Join,
    Kind,
    LeftJoin,
    OneRow,
    Operator,
    Project,
    Projection,
    UnionAll,
    references,
)
from dbt_ivm.types import element_type, infer

#: Generators: how many leading columns are positions, and whether rows without elements are kept.
GENERATORS: dict[type[exp.Expr], tuple[bool, bool]] = {
    exp.Explode: (False, False),
    exp.ExplodeOuter: (False, True),
    exp.Posexplode: (True, False),
    exp.PosexplodeOuter: (True, True),
    exp.Inline: (False, False),
}


def lower_from(scope: Scope, select: exp.Select) -> list[exp.Expr]:
    """Sets the scope's plan; returns conditions of inner joins that use columns of an enclosing query."""
    from_ = select.args.get("from_")
    correlated: list[exp.Expr] = []
    if from_ is None:
        return correlated
    members, predicates = [_source(scope, from_.this)], list[exp.Expr]()

    def joined() -> Operator:
        """The inner joins so far."""
        return members[0] if len(members) == 1 and not predicates else Join(tuple(members), tuple(predicates))

    for join in select.args.get("joins") or ():
        words = set(f"{join.method} {join.side} {join.kind}".upper().split())
        _refuse_join(join, words)
        right = _source(scope, join.this)
        conditions = conjuncts(join.args["on"]) if join.args.get("on") is not None else []
        is_outer = bool(words & {"LEFT", "RIGHT", "FULL", "SEMI", "ANTI"})
        asking = [c for c in conditions if c.find(exp.Query) or (asks_the_clock(c) and not is_outer)]
        scope.plan = joined()
        found = [p for c in conditions if c not in asking for p in conjuncts(scope.resolve(c))]
        if is_outer:  # the clock, if it was asked for
            members, predicates = [scope.plan], []
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
        if asking:
            raise Refusal("subquery", "in the condition of an outer join", line_of(join))
        if outside:
            raise Refusal("subquery", f"{' '.join(sorted(words))} JOIN on columns of an outer query", line_of(join))
        members, predicates = [_outer(joined(), right, tuple(found), words)], []
    scope.plan = joined()
    for lateral in select.args.get("laterals") or ():
        scope.plan = _lateral_view(scope, lateral)
    return correlated


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
            rows = lower_pivot(lowering, rows, alias, pivot)
        return scope.add(pivots[-1].alias or alias, rows)
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        if source.name in lowering.ctes and source.name not in lowering.relations:
            return scope.add(alias, lowering.renamed(lowering.ctes[source.name], alias))
        return scope.add(alias, lowering.relation(source.name, alias))
    if isinstance(source, exp.Subquery):
        return scope.add(alias, lowering.renamed(lowering.query(source.this), alias))
    if isinstance(source, exp.Values):
        return scope.add(alias, _values(scope, source))
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


def _lateral_view(scope: Scope, lateral: exp.Lateral) -> Operator:
    generator, alias = lateral.this, lateral.args["alias"]
    names = [c.name for c in alias.columns]
    return generated(scope, generator, alias.name, names, bool(lateral.args.get("outer")))


def generated(scope: Scope, generator: exp.Expr, alias: str, names: list[str], outer: bool = False) -> Operator:
    """The rows that a generator makes of each row; its columns are known as ``alias.name``."""
    if type(generator) not in GENERATORS:
        raise Refusal("lateral", scope.text(generator), line_of(generator) or scope.line)
    with_position, keeps = GENERATORS[type(generator)]
    argument = scope.resolve(generator.this)
    call = type(generator)(this=argument)
    element = element_type(infer(argument, scope.plan.types))
    kinds = (["int"] if with_position else []) + ([element] if not isinstance(generator, exp.Inline) else [])
    made = []
    for position, name in enumerate(names):
        column = scope.lowering.fresh(f"{alias}_{name}")
        made.append(Column(column, kinds[position] if position < len(kinds) else ""))
        scope.columns[(alias, name)] = column
    position_column = made[0].name if with_position else ""
    keeps_rows = outer or keeps
    if isinstance(call, (exp.ExplodeOuter, exp.PosexplodeOuter)):
        call = (exp.Posexplode if with_position else exp.Explode)(this=argument)
    return Generate(scope.plan, call, tuple(made), keeps_rows, position_column)


def filtered(plan: Operator, conditions: list[exp.Expr]) -> Operator:
    return Filter(plan, exp.and_(*conditions)) if conditions else plan

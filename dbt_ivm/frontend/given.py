"""Values of the query around a subquery as rows that the subquery joins, so that nothing in it refers to the outside.

    EXISTS (q(t.a))   →   G = DISTINCT t.a,  q'(G.a) has the results for every row of G,  connected by t.a <=> G.a

Every SELECT of q reads G beside its own FROM and carries G's columns to its result: GROUP BY groups by them, too,
windows and LIMIT are per row of G, an aggregate over all rows is one per row of G, set operations compare them.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dbt_ivm import names
from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.lower import Lowering
from dbt_ivm.frontend.lower_limit import without_aliases
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.operators import Aggregate, Existence, Kind, LeftJoin, Operator, Project, Projection, col

LIMITED = ("limit", "offset")


@dataclass(frozen=True)
class Given:
    """``columns``: what each (table, column) of the outside is called in ``plan``; ``outer``: and outside."""

    plan: Operator
    columns: dict[tuple[str, str], str]
    outer: tuple[str, ...]

    @property
    def inner(self) -> tuple[str, ...]:
        return self.plan.column_names

    @property
    def outputs(self) -> list[tuple[str, exp.Expr]]:
        """What every SELECT has at the end of its list."""
        return [(names.hidden("given", i), col(n)) for i, n in enumerate(self.inner, 1)]

    def again(self, lowering: Lowering) -> Given:
        """The same rows under other names."""
        new = {n: lowering.fresh(n) for n in self.inner}
        plan = Project(self.plan, tuple(Projection(new[n], col(n)) for n in self.inner))
        return Given(plan, {key: new[n] for key, n in self.columns.items()}, self.outer)


def given_values(lowering: Lowering, plan: Operator, used: dict[tuple[str, str], str]) -> Given:
    """The distinct combinations of these columns of the plan."""
    outer = tuple(dict.fromkeys(used.values()))
    apart = {n: lowering.fresh(f"given_{n}") for n in outer}
    rows = Project(without_values(plan, outer), tuple(Projection(apart[n], col(n)) for n in outer))
    return Given(Aggregate(rows, rows.column_names), {key: apart[n] for key, n in used.items()}, outer)


def without_values(plan: Operator, used: tuple[str, ...]) -> Operator:
    """The plan below what other subqueries added to each row, as long as it has the columns."""
    while isinstance(plan, LeftJoin) or (isinstance(plan, Existence) and plan.kind is Kind.MARK):
        if not set(used) <= set(plan.left.column_names):
            break
        plan = plan.left
    return plan


def per_row_limit(select: exp.Select) -> exp.Select:
    """ORDER BY … LIMIT n as row_number() OVER (ORDER BY …) <= n, to be partitioned by what is given."""
    if not any(select.args.get(c) is not None for c in LIMITED):
        return select
    order = select.args.get("order")
    bounds = [_number(select, c) for c in LIMITED]
    if order is None or None in bounds or select.args.get("qualify") or select.args.get("distinct"):
        raise Refusal("limit", "in a subquery, without ORDER BY or beside DISTINCT or QUALIFY", line_of(select))
    most, skipped = (b or 0 for b in bounds)
    select = select.copy()
    items = {i.alias_or_name: i.unalias() for i in select.selects}
    ordered = [o.copy() for o in order.expressions]
    for one in ordered:
        key = one.this
        if isinstance(key, exp.Literal) and not key.is_string:
            one.set("this", select.selects[int(key.name) - 1].unalias().copy())
        else:
            one.set("this", without_aliases(key, items))
    place = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=ordered))
    kept: exp.Expr = exp.GT(this=place, expression=exp.Literal.number(skipped))
    if select.args.get("limit") is not None:
        first = exp.LTE(this=place.copy(), expression=exp.Literal.number(skipped + most))
        kept = exp.and_(first, kept) if skipped else first
    for clause in (*LIMITED, "order"):
        select.set(clause, None)
    select.set("qualify", exp.Qualify(this=kept))
    return select


def _number(select: exp.Select, clause: str) -> int | None:
    """The clause's number, 0 without the clause, None when it is not a plain number."""
    node = select.args.get(clause)
    if node is None:
        return 0
    return int(node.expression.name) if isinstance(node.expression, exp.Literal) else None

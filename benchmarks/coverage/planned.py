"""What the planner says about a model: the strategy of a refresh, the reason for a full one, the operators' rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.coverage.data import TableData
from dbt_ivm.api import plan_view, table
from dbt_ivm.catalog.tables import Catalog, Table
from dbt_ivm.frontend.support import CONSTRUCTS, Strategy
from dbt_ivm.operators import Aggregate, Linearity, Operator
from dbt_ivm.refresh.view import CompiledView, compile_view
from dbt_ivm.storage.layout import Shape

#: Leaves have no rule of their own: their change is read.
RULES = {
    Linearity.LINEAR: Strategy.ALGEBRAIC.value,
    Linearity.MULTILINEAR: Strategy.ALGEBRAIC.value,
    Linearity.NON_LINEAR: Strategy.AFFECTED_KEYS.value,
}


@dataclass(frozen=True)
class Planned:
    """
    Args:
        clause: the reason with the part of the query that it is about.
        operators: the kinds in the plan with the rule of each, sorted.
    """

    strategy: str
    reason: str = ""
    clause: str = ""
    operators: tuple[tuple[str, str], ...] = ()


def declare(tables: Iterable[TableData], schema: str, foreign_keys: bool) -> list[Table]:
    known = {t.name: t for t in tables}
    return [
        table(
            f"{schema}.{t.name}",
            t.columns,
            primary_key=t.keys.primary_key,
            foreign_keys=[
                ((column,), f"{schema}.{to}", known[to].keys.primary_key)
                for column, to in t.keys.references
                if foreign_keys and to in known
            ],
        )
        for t in known.values()
    ]


def plan_model(sql: str, tables: list[Table]) -> Planned:
    """The strategy when every table has changed."""
    changes: Mapping[str, tuple[int, int]] = {str(t.name): (0, 1) for t in tables}
    plan = plan_view(sql, tables, model="db.model", changes=changes)
    view = compile_view(sql, Catalog.of(tables))
    if view.refusal is not None:
        return Planned(plan.strategy, CONSTRUCTS[view.refusal.construct].reason, view.refusal.reason)
    return Planned(plan.strategy, operators=operator_rules(view))


def operator_rules(view: CompiledView) -> tuple[tuple[str, str], ...]:
    """An aggregate at the root whose measures are adjusted in place is algebraic, any other recomputes its groups."""
    assert view.layout.rows is not None
    found = set()
    if isinstance(view.layout.rows, Aggregate):
        adjusted = view.layout.shape is Shape.GROUPS
        found.add(("Aggregate", (Strategy.ALGEBRAIC if adjusted else Strategy.AFFECTED_KEYS).value))
        below: tuple[Operator, ...] = view.layout.rows.inputs
    else:
        below = (view.layout.rows,)
    for operator in below:
        found |= {(kind(o), RULES[o.linearity]) for o in _walk(operator) if o.linearity in RULES}
    return tuple(sorted(found))


def kind(operator: Operator) -> str:
    if isinstance(operator, Aggregate):
        return "Aggregate below" if operator.measures else "Distinct below"
    return type(operator).__name__


def _walk(operator: Operator) -> Iterable[Operator]:
    yield operator
    for below in operator.inputs:
        yield from _walk(below)

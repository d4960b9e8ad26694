"""Where the changes of a window function begin: rows that sort before the first changed row keep their values.

    m(P) = the first changed order key of partition P       kept: rows not before m(P)

For functions that look back (``operators/window_reach.py``); for those that look ahead the order is turned round.  The
first column of ORDER BY decides alone: what it does not tell apart is not before m.  Several functions keep the rows of
any of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.delta.weights import join_weighted
from dbt_ivm.operators import Aggregate, Join, Measure, Operator, Project, Projection, WindowFunction, col
from dbt_ivm.operators.window_reach import Looks, looks
from dbt_ivm.types import infer


@dataclass(frozen=True)
class Edge:
    """An order in which rows from the first changed one on are kept."""

    key: exp.Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class FirstChanges:
    """Per changed partition the first changed key of each edge."""

    rows: Aggregate
    partition: tuple[str, ...]
    edges: tuple[Edge, ...]

    def joined_to(self, rows: Operator) -> Operator:
        """Rows of changed partitions, each with its partition's first changes; weights stay."""
        same = tuple(
            exp.NullSafeEQ(this=col(p), expression=col(g)) for p, g in zip(self.partition, self.rows.group, strict=True)
        )
        return join_weighted(Join((rows, self.rows), same), (rows, self.rows))

    @property
    def is_reached(self) -> exp.Expr:
        """Whether a row with its partition's first changes is not before one of them."""
        conditions: list[exp.Expr] = []
        for number, edge in enumerate(self.edges, 1):
            first, key = col(names.hidden("first", number)), nodes.grouped(edge.key)
            order = exp.LTE if edge.descending else exp.GTE
            is_null: exp.Expr = exp.Is(this=key.copy(), expression=exp.Null())
            if edge.nulls_first:  # a changed NULL is before every value
                is_null = exp.EQ(this=col(names.hidden("null", number)), expression=exp.Literal.number(1))
            conditions += [order(this=key, expression=first), is_null]
        return exp.or_(*conditions)


def edges_of(functions: tuple[WindowFunction, ...]) -> tuple[Edge, ...]:
    """The orders of the functions; none when some function looks everywhere, or there is no function."""
    found: dict[tuple[str, bool, bool], Edge] = {}
    for function in functions:
        direction = looks(function.call)
        if direction is Looks.EVERYWHERE:
            return ()
        first = function.call.args["order"].expressions[0]
        if not isinstance(first, exp.Ordered):
            return ()
        turned = direction is Looks.AHEAD
        edge = Edge(first.this, bool(first.args.get("desc")) != turned, bool(first.args.get("nulls_first")) != turned)
        found.setdefault((edge.key.sql(dialect="spark"), edge.descending, edge.nulls_first), edge)
    return tuple(found.values())


def first_changes(change: Operator, partition: tuple[str, ...], edges: tuple[Edge, ...]) -> FirstChanges:
    group = tuple(names.hidden("affected", i) for i, _ in enumerate(partition, 1))
    keys = tuple(names.hidden("key", i) for i, _ in enumerate(edges, 1))
    listed = [Projection(g, col(p)) for g, p in zip(group, partition, strict=True)]
    listed += [Projection(k, e.key.copy()) for k, e in zip(keys, edges, strict=True)]
    measures: list[Measure] = []
    for number, (key, edge) in enumerate(zip(keys, edges, strict=True), 1):
        extreme = exp.Max if edge.descending else exp.Min
        kind = infer(edge.key, change.types)
        measures.append(Measure(names.hidden("first", number), extreme(this=col(key)), kind))
        if edge.nulls_first:
            is_null = exp.Is(this=col(key), expression=exp.Null())
            flag = exp.Case(ifs=[exp.If(this=is_null, true=exp.Literal.number(1))], default=exp.Literal.number(0))
            measures.append(Measure(names.hidden("null", number), exp.Max(this=flag), "int"))
    rows = Aggregate(Project(change, tuple(listed)), group, tuple(measures), is_global=not group)
    return FirstChanges(rows, partition, edges)

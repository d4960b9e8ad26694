"""The names of one SELECT: ``alias.column`` to a column of the plan; names of enclosing queries are seen through.

Column names are unique in a whole plan, so a reference to an enclosing query is that query's column name: a predicate
is correlated when it uses columns that its own plan does not have.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import names
from dbt_ivm.catalog.clock import clock_name, clock_table
from dbt_ivm.errors import Refusal, UserError
from dbt_ivm.frontend.bind import with_real_names
from dbt_ivm.frontend.builtin_functions import SCALAR_FUNCTIONS
from dbt_ivm.frontend.clocks import clock_of, clock_value
from dbt_ivm.frontend.functions import (
    AGGREGATE_NAMES,
    GENERATOR_NAMES,
    NON_DETERMINISTIC,
    NON_DETERMINISTIC_NAMES,
    TIME_FUNCTIONS,
    TIME_NAMES,
    UNSUPPORTED_AGGREGATES,
    WINDOW_NAMES,
)
from dbt_ivm.frontend.lower import Lowering, Rows
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.frontend.spread_stars import spread_stars
from dbt_ivm.operators import Clock, Join, OneRow, Operator, col
from dbt_ivm.types import function_names


class Scope:
    """``plan`` grows while the SELECT is lowered: FROM, then what subqueries in expressions add to each row."""

    def __init__(self, lowering: Lowering, line: int | None, outer: Scope | None = None) -> None:
        self.lowering = lowering
        self.line = line
        self.outer = outer
        self.plan: Operator = OneRow()
        self.columns: dict[tuple[str, str], str] = {}
        self.given: frozenset[tuple[str, str]] = frozenset()  # columns of a query around it
        self.shares_columns = False  # by JOIN … USING
        self.only_tested: set[str] = set()  # tables whose columns end with their SEMI or ANTI JOIN
        self.clocks: dict[str, str] = {}
        self.subqueries: list[tuple[exp.Expr, exp.Expr]] = []  # and what they became
        self.is_condition = False  # what the clock shows is not looked up but left to a MovingFilter

    def add(self, alias: str, rows: Rows) -> Operator:
        for name, column in rows.outputs:
            self.columns[(alias, name)] = column
        return rows.plan

    def hide(self, alias: str) -> None:
        """The columns of a table cannot be mentioned any more."""
        self.only_tested.add(alias)
        self.columns = {key: column for key, column in self.columns.items() if key[0] != alias}

    def find(self, table: str, name: str) -> str | None:
        if (table, name) in self.columns:
            return self.columns[(table, name)]
        return self.outer.find(table, name) if self.outer is not None else None

    def resolve(self, expression: exp.Expr, keep: tuple[type[exp.Expr], ...] = ()) -> exp.Expr:
        """The expression over the plan's columns; refuses what has no incremental meaning.

        Subqueries become columns of the plan; kinds in ``keep`` are left for a later stage.
        """
        from dbt_ivm.frontend.lower_subquery import is_subquery, subquery_value

        def lowered(node: exp.Expr) -> exp.Expr:
            if is_subquery(node):
                return subquery_value(self, node)
            if isinstance(node, exp.Column):
                return self.column(node)
            if clock_of(node):
                return self.clock(node)
            if not isinstance(node, keep):
                self.refuse(node)
            return node

        return spread_stars(expression, self.all_of).transform(lowered)

    def all_of(self, table: str) -> list[exp.Column] | None:
        """What a star stands for, of one table or (``""``) of all; None where joins show two columns as one."""
        if self.shares_columns:
            return None
        mine = {key: column for key, column in self.columns.items() if key not in self.given}
        have = set(self.plan.column_names)
        return [
            exp.column(name, table=alias)
            for (alias, name), column in mine.items()
            if column in have and table in ("", alias)
        ]

    def clock(self, node: exp.Expr) -> exp.Expr:
        """The date or the time, as an expression over a column of the plan."""
        kind = clock_of(node)
        self.lowering.tables[str(clock_name(kind))] = clock_table(kind)
        if self.is_condition:
            return clock_value(node, col(names.clock(kind)))
        known = self.clocks.get(kind)
        if known is None or known not in self.plan.column_names:
            known = self.clocks[kind] = self.lowering.fresh(f"now_{kind}")
            self.plan = Join((self.plan, Clock(kind, known)))
        return clock_value(node, col(known))

    def column(self, node: exp.Column) -> exp.Expr:
        if not node.table:  # made by an earlier stage
            return node
        if isinstance(node.this, exp.Star):
            detail = f"{node.sql(dialect='spark')} of a table function without names of its columns"
            raise Refusal("lateral", detail, line_of(node) or self.line)
        found = self.find(node.table, node.name)
        if found is None and node.table in self.only_tested:
            text = f"{self.text(node)}: a SEMI or ANTI JOIN keeps no columns of its right side"
            raise UserError("IVM_UNRESOLVED", text)
        if found is None:
            detail = f"{node.sql(dialect='spark')} belongs to a query further out"
            raise Refusal("subquery", detail, line_of(node) or self.line)
        return col(found)

    def refuse(self, node: exp.Expr) -> None:
        construct = refused_construct(node)
        if construct:
            raise Refusal(construct, self.text(node), line_of(node) or self.line)

    def text(self, node: exp.Expr) -> str:
        """The clause as the user wrote it, for messages."""
        return with_real_names(node.sql(dialect="spark"), self.lowering.relations)[:60]


def refused_construct(node: exp.Expr) -> str:
    called = function_names(node)
    if isinstance(node, exp.Window):
        return "window_place"
    if isinstance(node, exp.Query):
        return "subquery"
    if isinstance(node, TIME_FUNCTIONS) or called & TIME_NAMES:
        return "time_function"
    if isinstance(node, NON_DETERMINISTIC) or called & NON_DETERMINISTIC_NAMES:
        return "non_deterministic"
    if called & UNSUPPORTED_AGGREGATES:
        return "aggregate_function"
    if isinstance(node, exp.Anonymous) and not called & (SCALAR_FUNCTIONS | AGGREGATE_NAMES | WINDOW_NAMES):
        return "unknown_function"
    return "lateral" if isinstance(node, exp.UDTF) or called & GENERATOR_NAMES else ""

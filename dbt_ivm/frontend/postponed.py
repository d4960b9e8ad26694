"""Subqueries, clocks and generators of a grouped query, put off until the groups are there.

A column stands for each meanwhile.  Of x IN (q) only q is put off: x becomes a group column or a measure like the
rest of the expression, and the groups are compared with q.

    HAVING max(a) NOT IN (q)   →   NOT (max(a) IN (later))   over rows   →   NOT (measure IN (q))   over groups
    SELECT explode(list(a))    →   later, list(a)            over rows   →   explode(measure)       of groups
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from dbt_ivm.frontend.clocks import clock_of
from dbt_ivm.frontend.functions import is_aggregate
from dbt_ivm.frontend.grouping import group_elements
from dbt_ivm.frontend.lower_subquery import is_subquery
from dbt_ivm.frontend.scope import Scope

LATER = "__ivm_later_"

#: What each column stands for.
Later = dict[str, exp.Expr]


@dataclass
class Waiting:
    """What one query computes when its groups are there; generators as (alias, names of the columns, call)."""

    later: Later = field(default_factory=dict)
    generators: list[tuple[str, list[str], exp.Expr]] = field(default_factory=list)

    def columns(self, alias: str, names: list[str], generator: exp.Expr) -> list[tuple[str, exp.Expr]]:
        """The columns of a generator, as items of the select list."""
        self.generators.append((alias, names, generator))
        columns = {name: f"{LATER}{alias}_{name}" for name in names}
        self.later.update({column: exp.column(name, table=alias) for name, column in columns.items()})
        return [(name, exp.column(column)) for name, column in columns.items()]


def postponed(expression: exp.Expr, later: Later, keys: list[exp.Expr]) -> exp.Expr:
    """The expression without subqueries and clocks outside of aggregates; those in group keys are of the rows."""

    def visit(node: exp.Expr) -> exp.Expr:
        if node in keys:  # its value, whatever stands above it here
            return keys[keys.index(node)].copy()
        if is_subquery(node) or clock_of(node):
            name = f"{LATER}{len(later)}"
            later[name] = node.copy()
            if not isinstance(node, exp.In):
                return exp.column(name)
            node.set("query", None)
            node.set("expressions", [exp.column(name)])
            node.set("this", visit(node.this))
            return node
        inside_rows = isinstance(node, exp.Filter) or is_aggregate(node)
        if not inside_rows or isinstance(node.parent, exp.Window):
            for part in list(node.iter_expressions()):
                changed = visit(part)
                if changed is not part:
                    part.replace(changed)
        return node

    is_concerned = any(is_subquery(n) or clock_of(n) for n in expression.walk())
    return visit(expression.copy()) if is_concerned else expression


def over_groups(scope: Scope, expression: exp.Expr, later: Later) -> exp.Expr:
    """An expression over groups with the subqueries and clocks back in it, which the scope's plan now gets."""

    def back(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.In) and len(node.expressions) == 1:
            asked = later.get(node.expressions[0].name)
            if isinstance(asked, exp.In):
                node.set("expressions", None)
                node.set("query", asked.args["query"].copy())
            return node
        return later[node.name].copy() if isinstance(node, exp.Column) and node.name in later else node

    return scope.resolve(expression.transform(back), keep=(exp.Window,))


def asks_over_groups(query: exp.Select) -> bool:
    """Whether a grouped query has subqueries or clocks that are computed per group."""
    group, having, later = query.args.get("group"), query.args.get("having"), Later()
    keys = group_elements(group) if group is not None else []
    for expression in [*(i.unalias() for i in query.selects), *([having.this] if having is not None else [])]:
        postponed(expression, later, keys)
    return bool(later)

"""Rewrites that make a plan cheaper, each one file, each removable; tests run with none and with all.

push_filters, simplify_outer_joins, pull_left_joins, flatten_joins
                   before the layout is chosen: keys are read off joins
prune_columns      of the stored rows
contract_lookups   at a refresh, with what is known about keys then (refresh/apply/context.py)
gather_left_joins  at a refresh, the left joins that are no lookups
net_supplements    at a refresh, instead of gather_left_joins where it reads less
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbt_ivm.errors import InternalError
from dbt_ivm.operators import Operator
from dbt_ivm.optimizer.contract_lookups import contract_lookups
from dbt_ivm.optimizer.flatten_joins import flatten_joins
from dbt_ivm.optimizer.gather_left_joins import gather_left_joins
from dbt_ivm.optimizer.net_supplements import Verdict, judged, net_supplements
from dbt_ivm.optimizer.prune_columns import prune_columns
from dbt_ivm.optimizer.pull_left_joins import pull_left_joins
from dbt_ivm.optimizer.push_filters import push_filters
from dbt_ivm.optimizer.simplify_outer_joins import simplify_outer_joins

__all__ = [
    "EARLY_RULES",
    "RULES",
    "Rule",
    "Verdict",
    "apply_rule",
    "contract_lookups",
    "flatten_joins",
    "gather_left_joins",
    "judged",
    "net_supplements",
    "prune_columns",
    "pull_left_joins",
    "push_filters",
    "simplify_outer_joins",
]

Rule = Callable[..., Operator]

#: Rewrites of the whole view, in this order.
EARLY_RULES: tuple[Rule, ...] = (push_filters, simplify_outer_joins, pull_left_joins, flatten_joins)
RULES: tuple[Rule, ...] = (*EARLY_RULES, prune_columns, contract_lookups, gather_left_joins, net_supplements)


def apply_rule(plan: Operator, rule: Rule, rules: tuple[Rule, ...] = RULES, *facts: Any) -> Operator:
    """The rule, if it is among the chosen ones; one that changes the result's columns is named as the culprit."""
    if rule not in rules:
        return plan
    rewritten = rule(plan, *facts)
    if rewritten.column_names != plan.column_names:
        raise InternalError(f"rule {rule.__name__} changed the columns {plan.column_names} to {rewritten.column_names}")
    return rewritten

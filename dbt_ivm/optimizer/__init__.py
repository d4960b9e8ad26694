"""Rewrites that make a plan cheaper, each one file, each removable; tests run with none and with all."""

from __future__ import annotations

from collections.abc import Callable

from dbt_ivm.errors import InternalError
from dbt_ivm.operators import Operator
from dbt_ivm.optimizer.prune_columns import prune_columns

Rule = Callable[[Operator], Operator]

RULES: tuple[Rule, ...] = (prune_columns,)


def optimize(plan: Operator, rules: tuple[Rule, ...] = RULES) -> Operator:
    """Apply the rules in order; a rule that changes the result's columns is named as the culprit."""
    for rule in rules:
        rewritten = rule(plan)
        if rewritten.column_names != plan.column_names:
            raise InternalError(
                f"rule {rule.__name__} changed the columns {plan.column_names} to {rewritten.column_names}"
            )
        plan = rewritten
    return plan

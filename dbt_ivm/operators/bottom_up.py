"""How passes go through a plan: inputs first, every operator once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Set

from dbt_ivm.operators.base import Operator


def bottom_up(plan: Operator, rule: Callable[[Operator, Set[int]], Operator]) -> Operator:
    """The plan with the rule applied to every operator, over inputs to which it was applied before.

    A common table expression that several places mention is one object and stays one.

    Args:
        rule: gets an operator, and the ids of operators below it that several places share.
    """
    mentions: Counter[int] = Counter()

    def count(operator: Operator) -> None:
        mentions[id(operator)] += 1
        if mentions[id(operator)] == 1:
            for below in operator.inputs:
                count(below)

    count(plan)
    done: dict[int, tuple[Operator, Operator]] = {}  # with the original, so that its id stays taken
    shared: set[int] = set()

    def visit(operator: Operator) -> Operator:
        known = done.get(id(operator))
        if known is None:
            inputs = tuple(visit(i) for i in operator.inputs)
            same = all(new is old for new, old in zip(inputs, operator.inputs, strict=True))
            rebuilt = rule(operator if same else operator.with_inputs(inputs), shared)
            known = done[id(operator)] = (operator, rebuilt)
            if mentions[id(operator)] > 1:
                shared.add(id(rebuilt))
        return known[1]

    return visit(plan)

"""One pass for several joins that keep the rows of one left side."""

from __future__ import annotations

from collections.abc import Set

from dbt_ivm.operators import Operator, PreservingJoin, PreservingStar, references
from dbt_ivm.operators.bottom_up import bottom_up


def gather_left_joins(plan: Operator) -> Operator:
    """Replace a stack of left joins, semi joins, anti joins and marks on columns of one left side by one operator.

    Always safe: each join looks at its own left row only, so the left rows that any of them changes are found first
    and then go through all of them.

        LeftJoin (LeftJoin (fact, dim), other)   →   PreservingStar (fact; dim, other)

    See docs/optimizations/gather_left_joins.md.
    """

    def rule(operator: Operator, shared: Set[int]) -> Operator:
        return _gathered(operator) if isinstance(operator, PreservingJoin) else operator

    return bottom_up(plan, rule)


def _gathered(join: PreservingJoin) -> Operator:
    """The join as one more arm of the operator below it, when it is on the columns of that one's left side."""
    below = join.left
    if not isinstance(below, (PreservingJoin, PreservingStar)):
        return join
    base = below.left
    arms = below.arms if isinstance(below, PreservingStar) else (below,)
    added = set(below.column_names) - set(base.column_names)
    if any(added & set(references(p)) for p in join.predicates):
        return join
    return PreservingStar(base, (*arms, join))

"""Several joins that keep the rows of one left side, each on columns of that side (preserving.py).  In one pass:

    Δ(L ⊙1 R1 ⊙2 R2 …) = (ΔL + A) ⊙1 Post(R1) ⊙2 Post(R2) …  −  A ⊙1 Pre(R1) ⊙2 Pre(R2) …
    A = rows of Pre(L) that match a changed row of some Ri

What becomes of a left row depends on that row and its matches in each Ri.  Joins within joins would mention the change
of the left side twice at each level, and engines compute every mention.  Made by optimizer/gather_left_joins.py; it
never stands in a view plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from dbt_ivm import names
from dbt_ivm.errors import InternalError
from dbt_ivm.operators.base import Column, Linearity, Operator, col
from dbt_ivm.operators.existence import Existence, Kind
from dbt_ivm.operators.filter import Filter
from dbt_ivm.operators.preserving import PreservingJoin
from dbt_ivm.operators.project import Project

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class PreservingStar(Operator):
    """``arms`` are the joins in their order; the left side of each is replaced by what comes before it."""

    left: Operator
    arms: tuple[PreservingJoin, ...]

    linearity: ClassVar[Linearity] = Linearity.NON_LINEAR

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, *(arm.right for arm in self.arms))

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        left, *rights = inputs
        arms = tuple(replace(arm, right=r) for arm, r in zip(self.arms, rights, strict=True))  # type: ignore[type-var]
        return PreservingStar(left, arms)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.stacked(self.left, [arm.right for arm in self.arms]).columns

    def describe(self) -> str:
        return f"{len(self.arms)} joins that keep the first input"

    def stacked(self, left: Operator, rights: list[Operator]) -> Operator:
        """The joins over other inputs, one upon the other."""
        for arm, right in zip(self.arms, rights, strict=True):
            left = arm.with_inputs((left, right))
        return left

    def post(self, ctx: DeltaContext) -> Operator:
        return self.stacked(ctx.post_of(self.left), [ctx.post_of(arm.right) for arm in self.arms])

    def pre(self, ctx: DeltaContext) -> Operator:
        from dbt_ivm.delta.weights import as_bag

        return self.stacked(ctx.pre_of(self.left), [as_bag(ctx.pre_of(arm.right)) for arm in self.arms])

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.weights import sum_of, weight_last, weighted

        left_change = ctx.delta_of(self.left)
        again = self._matching(ctx)
        rows = sum_of([part for part in (left_change, again) if part is not None])
        if rows is None:
            return None
        parts = [weight_last(self.stacked(rows, [self._right(ctx, arm, left_change, "after") for arm in self.arms]))]
        if again is not None:
            before = self.stacked(again, [self._right(ctx, arm, None, "before") for arm in self.arms])
            parts.append(weighted(weight_last(before), -1))
        return sum_of(parts)

    def _changed(self, ctx: DeltaContext) -> list[PreservingJoin]:
        return [arm for arm in self.arms if ctx.delta_of(arm.right) is not None]

    def _right(self, ctx: DeltaContext, arm: PreservingJoin, left_change: Operator | None, when: str) -> Operator:
        """The right side of an arm; within the keys of the changes where these are all that is looked up."""
        from dbt_ivm.delta.weights import as_bag

        changed = self._changed(ctx)
        right_change = ctx.delta_of(arm.right)
        rows = ctx.post_of(arm.right) if when == "after" else ctx.pre_of(arm.right)
        if not changed or (changed == [arm] and right_change is not None):
            rows = arm.within(rows, left_change, right_change)
        return as_bag(rows)

    def _matching(self, ctx: DeltaContext) -> Operator | None:
        """A: left rows before the change that match a changed row of some arm; weighted."""
        from dbt_ivm.delta.weights import weighted

        changed = self._changed(ctx)
        if not changed:
            return None
        if len(changed) == 1:
            (arm,) = changed
            return arm.matching(ctx, self.left)
        rows = weighted(ctx.pre_of(self.left))
        columns, flags = rows.column_names, []
        for number, arm in enumerate(changed, 1):
            change = ctx.delta_of(arm.right)
            if change is None:
                raise InternalError("an arm that did not change has no matches to look for")
            mark = names.hidden("matches", number)
            rows = Existence(rows, arm.changed_right(change), arm.predicates, Kind.MARK, mark)
            flags.append(col(mark))
        return Project.keeping(Filter(rows, exp.or_(*flags)), columns)

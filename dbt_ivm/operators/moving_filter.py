"""Selection by a condition that asks for the date or the time.  LINEAR in its input; the clock moves rows in and out:

    Δ(σp(R)) = σp_now(ΔR)  +  σ(p_now and not p_before)(Pre(R))  −  σ(p_before and not p_now)(Pre(R))

Both conditions have literals in place of the clock, so files whose rows stay where they are can be skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from dbt_ivm import names
from dbt_ivm.catalog.clock import TYPES, clock_literal, clock_name
from dbt_ivm.operators.base import Column, Linearity, Operator, UnaryOperator, references, text
from dbt_ivm.operators.filter import Filter

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class MovingFilter(UnaryOperator):
    """In ``predicate`` the columns ``names.clock(kind)`` stand for what the clock shows."""

    input: Operator
    predicate: exp.Expr

    linearity: ClassVar[Linearity] = Linearity.LINEAR

    def __post_init__(self) -> None:
        self.check_columns(self.used)

    @property
    def used(self) -> tuple[str, ...]:
        """Columns of the input."""
        return tuple(n for n in references(self.predicate) if not names.is_clock(n))

    @property
    def clocks(self) -> tuple[str, ...]:
        return tuple(kind for kind in TYPES if names.clock(kind) in references(self.predicate))

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    def describe(self) -> str:
        return f"MovingFilter {text(self.predicate)}"

    def delta(self, ctx: DeltaContext) -> Operator | None:
        from dbt_ivm.delta.weights import sum_of, weighted

        change = ctx.delta_of(self.input)
        parts: list[Operator] = []
        if change is not None:
            parts.append(_where(change, self._now(ctx)))
        if any(ctx.window(clock_name(kind)) is not None for kind in self.clocks):
            before = weighted(ctx.pre_of(self.input))
            for met, unmet, sign in ((self._now, self._before, 1), (self._before, self._now, -1)):
                parts.append(weighted(_where(before, exp.and_(met(ctx), _not_true(unmet(ctx)))), sign))
        return sum_of(parts)

    def post(self, ctx: DeltaContext) -> Operator:
        return Filter(ctx.post_of(self.input), self._now(ctx))

    def pre(self, ctx: DeltaContext) -> Operator:
        return Filter(ctx.pre_of(self.input), self._before(ctx))

    def _now(self, ctx: DeltaContext) -> exp.Expr:
        return self._at({kind: ctx.version(clock_name(kind)) for kind in self.clocks})

    def _before(self, ctx: DeltaContext) -> exp.Expr:
        windows = {kind: ctx.window(clock_name(kind)) for kind in self.clocks}
        return self._at({k: ctx.version(clock_name(k)) if w is None else w.first - 1 for k, w in windows.items()})

    def _at(self, versions: dict[str, int | None]) -> exp.Expr:
        def shown(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column):
                for kind, version in versions.items():
                    if node.name == names.clock(kind):
                        return clock_literal(kind, version)
            return node

        return self.predicate.transform(shown)


def _where(rows: Operator, condition: exp.Expr) -> Operator:
    from dbt_ivm.delta.weights import in_each_branch

    return in_each_branch(rows, lambda branch: Filter(branch, condition))


def _not_true(condition: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Coalesce(this=exp.Paren(this=condition), expressions=[exp.false()]))

"""Whether a left row has a match (preserving.py): rows with one (SEMI), without (ANTI), all rows with a mark (MARK).

EXISTS, IN, LEFT SEMI JOIN are SEMI; NOT EXISTS, LEFT ANTI JOIN are ANTI; inside other expressions they are a MARK.
The key of the left side identifies a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from sqlglot import exp

from dbt_ivm.operators.base import Column, Operator, col, references
from dbt_ivm.operators.preserving import PreservingJoin
from dbt_ivm.operators.project import Project, Projection
from dbt_ivm.operators.union_all import UnionAll


class Kind(Enum):
    SEMI = "semi"
    ANTI = "anti"
    MARK = "mark"


@dataclass(frozen=True)
class Existence(PreservingJoin):
    """``mark``: the column that says whether there is a match, of kind MARK."""

    left: Operator
    right: Operator
    predicates: tuple[exp.Expr, ...]
    kind: Kind
    mark: str = ""

    def __post_init__(self) -> None:
        self.check_inputs()

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (*self.left.columns, Column(self.mark, "boolean")) if self.mark else self.left.columns

    def describe(self) -> str:
        mark = f" AS {self.mark}" if self.mark else ""
        return f"{self.kind.value.capitalize()}Join ON {self.condition}{mark}"

    def changed_right(self, change: Operator) -> Operator:
        """Only the columns of the condition matter: a change of others leaves every row its matches."""
        from dbt_ivm.delta.weights import kept_with_weight, net

        used = [n for n in self.right.value_names if any(n in references(p) for p in self.predicates)]
        wanted = tuple(used) or self.right.value_names
        return Project.keeping(net(kept_with_weight(change, wanted)), wanted)


def with_and_without(plan: Existence) -> UnionAll:
    """A mark as two lists: rows with a match, marked, and rows without one."""
    sides = ((Kind.SEMI, exp.true()), (Kind.ANTI, exp.false()))
    kept = tuple(Projection(n, col(n)) for n in plan.left.column_names)
    return UnionAll(
        tuple(
            Project(Existence(plan.left, plan.right, plan.predicates, kind), (*kept, Projection(plan.mark, value)))
            for kind, value in sides
        )
    )

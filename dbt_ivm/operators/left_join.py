"""LEFT JOIN, any predicate: each left row with its matches, or with NULLs when it has none (preserving.py).

The key of the left side identifies a row when each left row has one match at most; otherwise the keys of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from dbt_ivm.operators.base import Column, Operator
from dbt_ivm.operators.preserving import PreservingJoin
from dbt_ivm.operators.project import Project


@dataclass(frozen=True)
class LeftJoin(PreservingJoin):
    left: Operator
    right: Operator
    predicates: tuple[exp.Expr, ...] = ()

    def __post_init__(self) -> None:
        self.check_inputs()

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (*self.left.columns, *self.right.columns)

    def describe(self) -> str:
        return f"LeftJoin ON {self.condition}"

    def changed_right(self, change: Operator) -> Operator:
        from dbt_ivm.delta.weights import net

        return Project.keeping(net(change), self.right.value_names)

"""What every operator is: a frozen node with named columns and a delta rule.

An operator evaluates to a bag of rows.  Column names are unique within a plan's scope, so expressions refer to
columns by bare name.  A *weighted* operator has the extra column ``__ivm_weight``: its rows stand for that many
copies (negative: removals).  View plans are unweighted; delta plans are weighted; both use the same nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.errors import InternalError

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


class Linearity(Enum):
    """How a delta passes through an operator; docs/architecture.md explains the classes."""

    LEAF = "leaf"
    LINEAR = "linear"
    MULTILINEAR = "multilinear"
    NON_LINEAR = "non-linear"


@dataclass(frozen=True)
class Column:
    name: str
    type: str = ""


class Operator(ABC):
    """Base of all operators."""

    linearity: ClassVar[Linearity]

    @property
    @abstractmethod
    def inputs(self) -> tuple[Operator, ...]: ...

    @abstractmethod
    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator: ...

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]: ...

    @abstractmethod
    def describe(self) -> str:
        """One line for explain, without the inputs."""

    @abstractmethod
    def delta(self, ctx: DeltaContext) -> Operator | None:
        """The weighted change of this operator's result; None when it cannot have changed."""

    def post(self, ctx: DeltaContext) -> Operator:
        """The result after the change."""
        return self.with_inputs(tuple(ctx.post_of(i) for i in self.inputs))

    def pre(self, ctx: DeltaContext) -> Operator:
        """The result before the change; weighted, unless no input changed."""
        return self.with_inputs(tuple(ctx.pre_of(i) for i in self.inputs))

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @cached_property
    def types(self) -> dict[str, str]:
        return {c.name: c.type for c in self.columns}

    @property
    def is_weighted(self) -> bool:
        return names.WEIGHT in self.column_names

    @property
    def value_names(self) -> tuple[str, ...]:
        """All columns but the weight."""
        return tuple(n for n in self.column_names if n != names.WEIGHT)

    def check_columns(self, wanted: tuple[str, ...]) -> None:
        """Reject references to columns the input does not have."""
        have = {n for i in self.inputs for n in i.column_names}
        missing = [n for n in wanted if n not in have]
        if missing:
            raise InternalError(f"{self.describe()} refers to {missing}, its input has {sorted(have)}")

    def explain(self, indent: int = 0) -> str:
        lines = ["  " * indent + self.describe()]
        lines += [i.explain(indent + 1) for i in self.inputs]
        return "\n".join(lines)


class LeafOperator(Operator):
    """An operator that reads no other."""

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return ()

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return self


class NaryOperator(Operator):
    """An operator over any number of inputs, stored in the field ``members``."""

    members: tuple[Operator, ...]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self.members

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, members=inputs)  # type: ignore[type-var]


class UnaryOperator(Operator):
    """An operator over one input, stored in the field ``input``."""

    input: Operator

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        (only,) = inputs
        return replace(self, input=only)  # type: ignore[type-var]


def col(name: str) -> exp.Column:
    """A reference to an operator's column."""
    return nodes.column(name)


def references(expression: exp.Expr) -> tuple[str, ...]:
    """Column names an expression uses, each once, in order."""
    if isinstance(expression, exp.Column):
        return (nodes.column_name(expression),)
    return tuple(dict.fromkeys(nodes.column_name(c) for c in expression.find_all(exp.Column)))


def text(expression: exp.Expr) -> str:
    """An expression for explain: plain names without quotes."""
    if isinstance(expression, exp.Column):
        return expression.name
    bare = expression.copy()
    for identifier in bare.find_all(exp.Identifier):
        identifier.set("quoted", False)
    return bare.sql(dialect="spark")

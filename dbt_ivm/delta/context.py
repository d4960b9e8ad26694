"""Asks each operator for its rule, once per operator, and checks the border: a delta has exactly one weight."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt_ivm.analysis.growth import only_adds_rows
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.errors import InternalError
from dbt_ivm.operators.base import Operator

if TYPE_CHECKING:
    from dbt_ivm.delta.carried import CarriedChange
    from dbt_ivm.delta.kept import KeptChange


@dataclass(frozen=True)
class Window:
    """The versions of a source whose changes are not yet in the view; both ends inclusive."""

    first: int
    last: int


class DeltaContext:
    """Rules see the other operators through this object only."""

    def __init__(
        self,
        windows: Mapping[RelationName, Window],
        versions: Mapping[RelationName, int | None],
        kept: Mapping[RelationName, KeptChange | CarriedChange] | None = None,
        insert_only: frozenset[RelationName] = frozenset(),
    ) -> None:
        self._windows = windows
        self._versions = versions
        self._kept = kept or {}
        self._insert_only = insert_only
        # results are kept per operator object, so that what is used twice is one object and is rendered once
        self._deltas: dict[int, tuple[Operator, Operator | None]] = {}
        self._states: dict[tuple[str, int], tuple[Operator, Operator]] = {}
        self._parts: dict[tuple[int, str, int], tuple[Operator, Operator | None]] = {}

    def window(self, source: RelationName) -> Window | None:
        return self._windows.get(source)

    def version(self, source: RelationName) -> int | None:
        return self._versions.get(source)

    def keeping(
        self, kept: Mapping[RelationName, KeptChange | CarriedChange], insert_only: frozenset[RelationName]
    ) -> DeltaContext:
        """The same change, with these parts of it computed before."""
        return DeltaContext(self._windows, self._versions, kept, insert_only)

    def kept(self, source: RelationName) -> KeptChange | CarriedChange | None:
        """The source's change, if it was computed before this statement."""
        return self._kept.get(source)

    def only_adds(self, operator: Operator) -> bool:
        """Whether the change of this operator cannot remove a row."""
        return only_adds_rows(operator, self._insert_only, frozenset(self._windows))

    def delta_of(self, operator: Operator) -> Operator | None:
        known = self._deltas.get(id(operator))
        if known is not None:
            return known[1]
        from dbt_ivm.delta.weights import weight_last

        change = operator.delta(self)
        change = None if change is None else weight_last(change)
        if change is not None and change.value_names != operator.value_names:
            raise InternalError(
                f"the delta of {operator.describe()} has columns {change.value_names}, expected {operator.value_names}"
            )
        if change is not None and change.column_names.count("__ivm_weight") != 1:
            raise InternalError(f"the delta of {operator.describe()} has no single weight column")
        self._deltas[id(operator)] = (operator, change)
        return change

    def post_of(self, operator: Operator) -> Operator:
        return self._state("post", operator)

    def pre_of(self, operator: Operator) -> Operator:
        return self._state("post" if self.delta_of(operator) is None else "pre", operator)

    def once(self, key: tuple[int, str, int], owner: Operator, make: Callable[[], Operator | None]) -> Operator | None:
        """A part of an operator's rule, made once; the key begins with the owner's id, which stays taken."""
        if key not in self._parts:
            self._parts[key] = (owner, make())
        return self._parts[key][1]

    def _state(self, when: str, operator: Operator) -> Operator:
        known = self._states.get((when, id(operator)))
        if known is None:
            from dbt_ivm.delta.weights import weight_last

            known = (operator, operator.post(self) if when == "post" else weight_last(operator.pre(self)))
            self._states[(when, id(operator))] = known
        return known[1]

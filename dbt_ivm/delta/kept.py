"""The netted change of a source, kept under a name for the moment of a refresh.

Engines evaluate every mention of a change feed anew, and Spark plans each of them again whenever a stage ends.  A
change that a refresh uses more than once is therefore computed first, netted over all columns the view reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt_ivm import names
from dbt_ivm.analysis.scans import scans_of
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.delta.context import Window
from dbt_ivm.delta.weights import WEIGHT_TYPE, net
from dbt_ivm.operators import (
    Aggregate,
    Field,
    FullJoin,
    Join,
    LookupTree,
    Operator,
    PreservingJoin,
    PreservingStar,
    Scan,
    ScanChanges,
    ScanKept,
    SupplementedJoins,
    Windowing,
)

#: Operators whose rules mention the change of an input more than once.
REPEATING = (Aggregate, Windowing, PreservingJoin, PreservingStar, FullJoin, SupplementedJoins)


@dataclass(frozen=True)
class KeptChange:
    """``name`` holds the columns that any scan of the source reads, and the weight."""

    name: str
    source: RelationName
    window: Window
    fields: tuple[Field, ...]
    live: tuple[str, ...] = ()
    small: bool = False

    @staticmethod
    def of(name: str, root: Operator, source: RelationName, window: Window, small: bool) -> KeptChange:
        scans = scans_of(root, source)
        columns = {f.column.lower(): f for scan in scans for f in scan.fields}
        fields = tuple(Field(f.column, f.column, f.type) for f in columns.values())
        return KeptChange(name, source, window, fields, scans[0].live, small)

    @property
    def computed(self) -> Operator:
        """The plan of what is kept."""
        return net(ScanChanges(self.source, self.fields, self.window.first, self.window.last, self.live))

    def change_of(self, fields: tuple[Field, ...]) -> Operator:
        """The netted change of a scan of these columns."""
        what = f"Changes of {self.source} versions {self.window.first} to {self.window.last}"
        weight = Field(names.WEIGHT, names.WEIGHT, WEIGHT_TYPE)
        change = ScanKept(self.name, (*fields, weight), what, self.small)
        is_whole = {f.column.lower() for f in fields} == {f.column.lower() for f in self.fields}
        return change if is_whole else net(change)


def used_twice(root: Operator, changed: frozenset[RelationName]) -> list[RelationName]:
    """Changed sources whose change the delta of a plan mentions more than once.

    The rules of a join with several changed members and of an aggregate inside a view need the state before the
    change, which is the state after it without the change.
    """
    twice: set[RelationName] = set()

    def visit(operator: Operator) -> set[RelationName]:
        if isinstance(operator, Scan):
            return {operator.source} & changed
        below = [visit(member) for member in operator.inputs]
        found = set().union(*below)
        repeats = isinstance(operator, REPEATING) or (
            isinstance(operator, LookupTree) and any(e.keeps for e in operator.lookups)
        )
        if repeats or (isinstance(operator, (Join, LookupTree)) and sum(map(bool, below)) > 1):
            twice.update(found)
        twice.update(source for source in found if sum(source in part for part in below) > 1)
        return found

    visit(root)
    return sorted(twice, key=str)

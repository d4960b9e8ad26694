"""Declared foreign keys: what a refresh may rely on, and what it tells about each.

    mode     before the refresh              reach of changed keys    looked at before the commit
    off      –                               ALL                      –
    trust    –                               REPLACED                 –
    trust    partial (auxiliary/subtrees.py) ALL                      –
    verify   no row dangled (counted)        REMOVED                  references.py
    verify   rows dangled, or not counted    ALL                      references.py

The delta is exact with every reach that these facts allow (operators/lookup_tree.py); a foreign key that does not hold
only makes more keys count.  Rows that reference nothing are counted along each edge from refresh to refresh, so a
repair of the data is seen and the short reach comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt_ivm.catalog.tables import Table
from dbt_ivm.delta.context import DeltaContext
from dbt_ivm.operators import Lookup, LookupTree, Operator, Reach
from dbt_ivm.optimizer.contract_lookups import trees_in

if TYPE_CHECKING:
    from dbt_ivm.analysis.join_graph import Edge

VERIFY, TRUST, OFF = "verify", "trust", "off"


@dataclass(frozen=True)
class DeclaredEdge:
    """An edge that a declared foreign key goes along, in its tree."""

    tree: LookupTree
    lookup: Lookup

    @property
    def name(self) -> str:
        return self.lookup.name

    def is_concerned(self, deltas: DeltaContext) -> bool:
        """Whether one of its two tables changed: otherwise as many rows reference nothing as before."""
        parent = self.tree.members[self.lookup.parent]
        return deltas.delta_of(parent) is not None or deltas.delta_of(self.lookup.scan) is not None


@dataclass(frozen=True)
class EdgeFacts:
    """What a look told about an edge.

    Args:
        dangling: rows that reference nothing: how many more than before, or all where they were not counted before.
        replaced: keys removed and inserted in one window, for which the FK-Guard does not hold.
        doubled: inserted keys that more than one row has.
        example: one row that references nothing.
        is_once: no key that is looked up was or is a key of several rows.
    """

    dangling: int = 0
    replaced: int = 0
    doubled: int = 0
    example: str = ""
    is_once: bool = False


@dataclass(frozen=True)
class EdgeStatus:
    """One declared foreign key after a refresh, for run_results."""

    edge: str
    status: str
    touched: int | None = None
    is_violated: bool = False


def declared_edges(root: Operator) -> list[DeclaredEdge]:
    """Every edge of a contracted plan along which a foreign key is declared."""
    return [DeclaredEdge(tree, lookup) for tree in trees_in(root) for lookup in tree.lookups if lookup.is_declared]


def first_reach(edge: Edge, mode: str, dangling: Mapping[str, int]) -> Reach:
    """How far the changed keys behind an edge reach."""
    if edge.foreign_key is None or mode == OFF:
        return Reach.ALL
    if mode == TRUST:  # a partial one is nothing that the user could have asked to be trusted
        return Reach.ALL if edge.foreign_key.is_partial else Reach.REPLACED
    return Reach.REMOVED if dangling.get(edge.name) == 0 else Reach.ALL


def dangling_after(before: Mapping[str, int], names: Iterable[str], facts: Mapping[str, EdgeFacts]) -> dict[str, int]:
    """Rows that reference nothing along each edge, as far as they are counted.

    >>> dangling_after({"a": 2, "b": 0, "gone": 1}, ["a", "b", "c"], {"a": EdgeFacts(-2), "c": EdgeFacts(4)})
    {'a': 0, 'b': 0, 'c': 4}
    """
    known = [n for n in names if n in before or n in facts]
    return {n: before.get(n, 0) + (facts[n].dangling if n in facts else 0) for n in known}


def edge_status(
    name: str, mode: str, dangling: int | None, facts: EdgeFacts | None, is_partial: bool = False
) -> EdgeStatus:
    """
    Args:
        is_partial: rows that reference nothing do not tell that a declared key is broken.

    >>> edge_status("a(x) -> b(y)", "verify", 0, EdgeFacts(replaced=3)).status
    'touched 3'
    >>> edge_status("a(x) -> b(y)", "verify", 2, EdgeFacts(2, example='{"x":7}')).status
    'violated 2, e.g. {"x":7}'
    >>> edge_status("a(x) -> b(y)", "verify", 0, None)
    EdgeStatus(edge='a(x) -> b(y)', status='holds', touched=0, is_violated=False)
    >>> edge_status("a(x) -> b(y)", "verify", 2, None, is_partial=True).status
    '2 rows meet none'
    """
    if mode != VERIFY:
        trusted = "not trusted" if is_partial else "trusted"
        return EdgeStatus(name, trusted if mode == TRUST else "off")
    if dangling is None and facts is None:
        return EdgeStatus(name, "not checked")
    facts = facts or EdgeFacts()
    if dangling and is_partial:
        return EdgeStatus(name, f"{dangling} rows meet none", facts.replaced)
    if dangling:
        example = f", e.g. {facts.example}" if facts.example else ""
        return EdgeStatus(name, f"violated {dangling}{example}", facts.replaced, True)
    if facts.doubled:
        return EdgeStatus(name, f"violated {facts.doubled}, referenced keys of several rows", facts.replaced, True)
    return EdgeStatus(name, f"touched {facts.replaced}" if facts.replaced else "holds", facts.replaced)


def not_used(tables: Iterable[Table], used: Iterable[str]) -> list[EdgeStatus]:
    """Declared foreign keys that no lookup of the view goes along."""
    known = {name.split(" #")[0].lower() for name in used}
    found = []
    for table in tables:
        for key in (k for k in table.foreign_keys if not k.stands_for):
            edge = f"{table.name}({', '.join(key.columns)}) -> {key.to}({', '.join(key.to_columns)})"
            if edge.lower() not in known:
                found.append(EdgeStatus(edge, "not used"))
    return found

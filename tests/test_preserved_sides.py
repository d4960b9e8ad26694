"""The views of the paper on immediate views with outer joins, with its tables of sets, compared as they are printed there.

V4 is printed with LEFT JOIN everywhere, but its normalised tree has S and T in one unit and R2 in the root's, which only
inner joins give; the same goes for its sets.  Of V1 the text tells the sets of X2 only.
"""

from __future__ import annotations

import pytest

from dbt_ivm.analysis.preserved_sides import (
    JoinKind,
    JoinNode,
    JoinTree,
    normalised,
    outer_joins_of,
    pairs_of,
    tables_of,
    why_unsupported,
)


def join(kind: str, left: JoinTree, right: JoinTree, *used: str) -> JoinNode:
    every = frozenset(used)
    return JoinNode(JoinKind(kind), left, right, every, every, f"{kind} join on {', '.join(used)}")


VIEWS: dict[str, JoinTree] = {
    "V1": join(
        "full",
        join("full", join("inner", "R1", "R2", "R1", "R2"), join("inner", "T1", "T2", "T1", "T2"), "R1", "T1"),
        join("left", join("left", "X1", "X2", "X1", "X2"), join("inner", "Y1", "Y2", "Y1", "Y2"), "X1", "Y1"),
        *("R1", "X1", "X2", "Y2"),
    ),
    "V2": join("full", join("left", "R", "T", "R", "T"), "S", "T", "S"),
    "V3": join("full", join("full", "R", "T", "R", "T"), "S", "T", "S"),
    "V4": join("inner", join("left", "R1", join("inner", "S", "T", "S", "T"), "R1", "S", "T"), "R2", "R1", "R2"),
    "V5": join("left", "R", join("left", "S", "T", "S", "T"), "R", "S"),
    "V6": join("left", join("left", "R", "S", "R", "S"), "T", "R", "T"),
    "V7": join("full", join("full", "R", "T", "R", "T"), join("left", "S", "W", "S", "W"), "T", "S"),
}

#: view -> table -> pairs of preserved tables, tables supplied with NULLs, and tables that do not matter.
SETS: dict[str, dict[str, list[tuple[str, str, str]]]] = {
    "V1": {"X2": [("X1", "R1 R2 T1 T2 X2", "Y1 Y2"), ("R1", "X1 X2 Y1 Y2", "R2 T1 T2")]},
    "V2": {"R": [("S", "R T", "")], "T": [("R", "T S", ""), ("S", "R T", "")], "S": [("T", "S", "R")]},
    "V3": {"R": [("T", "R", "S")], "T": [("R", "T S", ""), ("S", "R T", "")], "S": [("T", "S", "R")]},
    "V4": {"R1": [], "R2": [], "T": [("R1", "T S", "R2")], "S": [("R1", "T S", "R2")]},
    "V5": {"R": [], "S": [("R", "T S", "")], "T": [("S", "T", "R")]},
    "V6": {"R": [], "S": [("R", "S", "T")], "T": [("R", "T", "S")]},
    "V7": {
        "R": [("T", "R", "S W")],
        "T": [("R", "T S W", ""), ("S", "R T", "W")],
        "S": [("T", "S W", "R")],
        "W": [("S", "W", "R T")],
    },
}

#: view -> (P2) tables on which a condition must not be true for NULLs, (P3) tables that rows left over are recognised
#: by, (P4) units of which it must be visible whether they are there.
CONDITIONS: dict[str, tuple[str, str, list[str]]] = {
    "V2": ("T", "R S T", ["R", "S", "T"]),
    "V3": ("T", "T R S", ["R", "S", "T"]),
    "V4": ("", "R1", ["S T"]),
    "V5": ("", "R S", ["S", "T"]),
    "V6": ("", "R", ["S", "T"]),
    "V7": ("T", "T R S", ["R", "S", "T", "W"]),
}


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@pytest.mark.parametrize("view", SETS)
def test_sets_of_preserved_and_supplied_tables(view: str) -> None:
    tree = VIEWS[view]
    assert not why_unsupported(tree)
    pairs = pairs_of(tree)
    for table, expected in SETS[view].items():
        assert {(p.preserved, p.supplied) for p in pairs[table]} == {(words(ps), words(ns)) for ps, ns, _ in expected}
        for ps, ns, care in expected:
            assert words(care) == frozenset(tables_of(tree)) - words(ps) - words(ns)


def loosened(tree: JoinTree, table: str) -> JoinTree:
    """The view with conditions that may be true for NULLs of a table."""
    if isinstance(tree, str):
        return tree
    left, right = loosened(tree.left, table), loosened(tree.right, table)
    return JoinNode(tree.kind, left, right, tree.used, tree.strict - {table}, tree.name)


def units(tree: JoinTree) -> list[frozenset[str]]:
    """The tables of each unit that can be missing."""

    def visit(unit: object) -> list[frozenset[str]]:
        here = [frozenset(unit.tables)] if unit.tables else []  # type: ignore[attr-defined]
        return here + [found for below in unit.below for found in visit(below)]  # type: ignore[attr-defined]

    root = normalised(tree)
    return [found for below in root.below for found in visit(below)]


@pytest.mark.parametrize("view", CONDITIONS)
def test_conditions(view: str) -> None:
    tree = VIEWS[view]
    intolerant, keys, visible = CONDITIONS[view]
    assert {t for t in tables_of(tree) if why_unsupported(loosened(tree, t))} == words(intolerant)
    assert {t for pairs in pairs_of(tree).values() for p in pairs for t in p.preserved} == words(keys)
    assert sorted(units(tree), key=sorted) == [words(unit) for unit in visible]


def test_direct_and_indirect_outer_joins() -> None:
    joins = outer_joins_of(VIEWS["V7"])
    direct, above = "full join on R, T", "full join on T, S"
    assert joins == {
        "R": (direct, above),
        "T": (direct, above),
        "S": (above,),
        "W": ("left join on S, W", above),
    }


def test_the_normalised_tree() -> None:
    root = normalised(VIEWS["V4"])
    assert (root.tables, [unit.tables for unit in root.below]) == (("R1", "R2"), [("S", "T")])
    (full,) = normalised(VIEWS["V2"]).below
    left, right = full.below
    assert (left.tables, [unit.tables for unit in left.below], right.tables) == (("R",), [("T",)], ("S",))


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        (join("left", "R", "S", "R"), "the condition of left join on R does not use both sides"),
        (
            join("inner", join("left", "R", "S", "R", "S"), "T", "S", "T"),
            "the condition of inner join on S, T uses S, which may be missing there",
        ),
        (
            join("left", "R", join("left", "S", "T", "S", "T"), "R", "T"),
            "the condition of left join on R, T uses T, which may be missing there",
        ),
        (loosened(VIEWS["V2"], "T"), "the condition of full join on T, S may be true without T"),
    ],
)
def test_what_is_not_supported(tree: JoinTree, why: str) -> None:
    assert why_unsupported(tree) == why


def test_what_a_table_had_its_match_by_counts_too() -> None:
    """c has its match by b: without b, d is left over as well."""
    tree = join("full", join("left", join("left", "a", "b", "a", "b"), "c", "b", "c"), "d", "c", "d")
    assert {(p.preserved, p.supplied) for p in pairs_of(tree)["b"]} == {
        (words("a"), words("b c d")),
        (words("d"), words("a b c")),
    }

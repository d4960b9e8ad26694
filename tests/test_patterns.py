"""The patterns of integration_tests, planned: which are incremental, and which are full and why."""

from __future__ import annotations

from functools import cache

from scripts.patterns import Pattern, read_patterns

#: Full, and the construct that makes it so.
FULL: dict[str, str] = {}


@cache
def patterns() -> dict[str, Pattern]:
    return {p.name: p for p in read_patterns()}


def test_all_but_the_listed_are_incremental() -> None:
    refused = {n: p.view.refusal.construct for n, p in patterns().items() if p.view.refusal is not None}
    assert refused == FULL


def test_every_pattern_has_a_title_of_its_own() -> None:
    assert len({p.title for p in patterns().values()}) == len(patterns())

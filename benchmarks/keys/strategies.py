"""The strategies that are compared; one more is one more line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.keys.views import GROUPED, PLAIN


@dataclass(frozen=True)
class Strategy:
    name: str
    about: str
    options: dict[str, Any] | None = None  # meta.ivm of an incremental_ivm model; None: another materialization

    @property
    def is_ours(self) -> bool:
        return self.options is not None

    @property
    def has_delta(self) -> bool:
        """Whether one SELECT is the whole change; with auxiliary views each has its own."""
        return self.options is not None and "auxiliary" not in self.options


TABLE, BY_HAND, BY_HAND_RIGHT = "table", "by_hand", "by_hand_right"
UNOPTIMISED, TRUST, VERIFY = "unoptimised", "trust", "verify"
#: Compared where there is something to keep: the snowflake, the chain, the graph with two roots.
M_OPT = "m_opt"

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        Strategy(TABLE, "dbt `table`"),
        Strategy(
            BY_HAND,
            "dbt `incremental` as people write it: facts of newer batches merged by key; groups with newer facts are"
            " computed again. Deletes and changed dimensions do not reach it",
        ),
        Strategy(
            BY_HAND_RIGHT,
            "a right one: versions kept in a table, keys affected by any table's change feed deleted and inserted; with"
            " GROUP BY a `table` over that (seconds of both)",
        ),
        Strategy(
            UNOPTIMISED,
            "`incremental_ivm` by counting, a branch per changed table, empty branches skipped",
            {"rules_off": ["contract_lookups"], "refresh": "strict"},
        ),
        Strategy(TRUST, "`incremental_ivm` that believes foreign keys", {"foreign_keys": "trust", "refresh": "strict"}),
        Strategy(VERIFY, "`incremental_ivm` that checks them", {"foreign_keys": "verify", "refresh": "strict"}),
        Strategy("off", "`incremental_ivm`, unique keys only", {"foreign_keys": "off", "refresh": "strict"}),
        Strategy(
            M_OPT,
            "as trust, and every looked-up table that looks up others is kept joined with them",
            {"auxiliary": "subtrees", "foreign_keys": "trust", "refresh": "strict"},
        ),
    )
}
DEFAULT = tuple(name for name in STRATEGIES if name not in ("off", M_OPT))


def measurable(strategies: tuple[str, ...], shapes: tuple[str, ...]) -> list[tuple[str, str]]:
    """(shape, strategy) in the order of models; the right one by hand stands on its plain model."""
    pairs = [(shape, strategy) for shape in (PLAIN, GROUPED) if shape in shapes for strategy in strategies]
    return [pair for pair in pairs if pair != (GROUPED, BY_HAND_RIGHT) or PLAIN in shapes]

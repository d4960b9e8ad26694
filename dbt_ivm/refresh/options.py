"""``meta.ivm`` of a model, validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dbt_ivm.errors import UserError
from dbt_ivm.optimizer import RULES

#: ``auxiliary``: every looked-up table that looks up others is kept with them (auxiliary/subtrees.py).
SUBTREES = "subtrees"

CHOICES: dict[str, tuple[str, ...]] = {
    "refresh": ("auto", "incremental", "strict", "full"),
    "foreign_keys": ("verify", "trust", "off"),
    "on_key_violation": ("degrade", "error"),
    "float_sums": ("exact", "fast"),
    "apply": ("auto", "merge", "log"),
    "auxiliary": ("auto", "off", SUBTREES),
}
#: Options that are a list of words.
LISTS: dict[str, tuple[str, ...]] = {"rules_off": tuple(sorted(rule.__name__ for rule in RULES))}
#: Options that are a number, with their smallest and largest value.
NUMBERS: dict[str, tuple[float, float]] = {"compact_at": (0.0, 1.0)}
#: Keys of meta.ivm that describe the relation as a source of others.
ABOUT_THE_RELATION = frozenset(("primary_key", "unique", "changes", "trust_tests"))


@dataclass(frozen=True)
class Options:
    refresh: str = "auto"
    foreign_keys: str = "verify"
    on_key_violation: str = "degrade"
    float_sums: str = "exact"
    apply: str = "auto"
    auxiliary: str = "auto"
    compact_at: float | None = None
    rules_off: tuple[str, ...] = ()

    @staticmethod
    def of(meta: Mapping[str, Any]) -> Options:
        """Checked options; unknown names and values are errors that list what is known."""
        known = {f.name for f in fields(Options)}
        chosen: dict[str, Any] = {}
        for name, value in meta.items():
            if name == "foreign_keys" and isinstance(value, list):
                continue  # declared keys of the model as a relation, read by the catalog
            if name in ABOUT_THE_RELATION:
                continue
            if name not in known:
                raise UserError(
                    "IVM_UNKNOWN_OPTION", f"meta.ivm.{name} is not an option; known: {', '.join(sorted(known))}"
                )
            if name in NUMBERS:
                chosen[name] = _number(name, value)
                continue
            if name in LISTS:
                chosen[name] = _words(name, value)
                continue
            text = ("on" if value else "off") if isinstance(value, bool) else str(value)  # YAML reads off as false
            if text not in CHOICES[name]:
                raise UserError(
                    "IVM_UNKNOWN_OPTION", f"meta.ivm.{name}: {value!r} is not one of {', '.join(CHOICES[name])}"
                )
            chosen[name] = text
        return Options(**chosen)


def _words(name: str, value: object) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, (list, tuple)) or any(w not in LISTS[name] for w in words):
        raise UserError("IVM_UNKNOWN_OPTION", f"meta.ivm.{name}: {value!r} is not a list of {', '.join(LISTS[name])}")
    return tuple(str(w) for w in words)


def _number(name: str, value: object) -> float:
    low, high = NUMBERS[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise UserError("IVM_UNKNOWN_OPTION", f"meta.ivm.{name}: {value!r} is not a number from {low:g} to {high:g}")
    return float(value)

"""Which strategy a refresh takes, and why: one list of questions, asked in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt_ivm.errors import StrictRefusal
from dbt_ivm.refresh.options import Options
from dbt_ivm.refresh.state import Pin, State
from dbt_ivm.refresh.view import CompiledView

CREATE, INCREMENTAL, FULL, NONE = "create", "incremental", "full", "none"


@dataclass(frozen=True)
class Decision:
    strategy: str
    reason: str = ""


@dataclass(frozen=True)
class Situation:
    """Everything the decision depends on.

    Args:
        state: None when there is no storage table.
        state_problem: why the state of an existing storage table cannot be used.
        asked_full: ``--full-refresh`` or ``full_refresh: true``.
    """

    view: CompiledView
    options: Options
    pins: Mapping[str, Pin]
    state: State | None = None
    state_problem: str = ""
    asked_full: bool = False


def decide(situation: Situation) -> Decision:
    """The strategy; under ``strict`` a full refresh nobody asked for is an error instead."""
    decision = _decide(situation)
    forced = situation.asked_full or situation.options.refresh == "full"
    if decision.strategy == FULL and situation.options.refresh == "strict" and not forced:
        raise StrictRefusal(decision.reason)
    if decision.strategy == CREATE and situation.options.refresh == "strict" and situation.view.refusal:
        raise StrictRefusal(situation.view.refusal.reason)
    return decision


def _decide(situation: Situation) -> Decision:
    view, state = situation.view, situation.state
    if state is None and not situation.state_problem:
        return Decision(CREATE, view.refusal.reason if view.refusal else "")
    if situation.asked_full:
        return Decision(FULL, "full refresh was asked for")
    if state is None:
        return Decision(FULL, situation.state_problem)
    if state.is_empty_build:
        return Decision(FULL, "the last build was made with --empty")
    if state.fingerprint != view.fingerprint:
        return Decision(FULL, "the definition, its keys or the columns it uses changed since the last refresh")
    if view.refusal and (view.unsteady or not situation.pins):
        return Decision(FULL, (view.unsteady or view.refusal).reason)
    if not any(pin.change for pin in situation.pins.values()):
        return Decision(NONE, "no source changed")
    if view.refusal:
        return Decision(FULL, view.refusal.reason)
    problems = [pin.change.problem for pin in situation.pins.values() if pin.change and pin.change.problem]
    if problems:
        return Decision(FULL, "; ".join(problems))
    return Decision(INCREMENTAL)

"""Errors by whose move it is: the user's, not yet ours, or our bug.  Each has a stable code.

``Refusal`` is not an error by itself: it says why a view cannot be maintained incrementally.  The policy of
the model decides whether it becomes a full refresh with that reason or (``refresh: strict``) an error.
"""

from __future__ import annotations

from dataclasses import dataclass


class IvmError(Exception):
    """Base of all errors of the package; ``code`` is stable, the text says what to do next."""

    code = "IVM_ERROR"

    def __init__(self, message: str) -> None:
        super().__init__(f"[{self.code}] {message}")


class UserError(IvmError):
    """The model, its configuration or its data must change."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class StrictRefusal(UserError):
    """``refresh: strict`` forbids the full refresh that would be needed."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            "IVM_STRICT",
            f"an incremental refresh is not possible: {reason}. The model has meta.ivm.refresh: strict, so it was "
            "not rebuilt. Fix the cause, or run once with --full-refresh.",
        )


class InternalError(IvmError):
    """A bug in dbt-ivm: a contract between two stages was broken."""

    code = "IVM_INTERNAL"

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}. This is a bug in dbt-ivm; nothing was written.")


@dataclass(frozen=True)
class Refusal(Exception):
    """Why a view has no incremental plan.

    Args:
        construct: key of the row in ``frontend.support.CONSTRUCTS``.
        detail: the clause as the user wrote it.
        line: line of the model's compiled SQL, when known.
    """

    construct: str
    detail: str = ""
    line: int | None = None

    @property
    def reason(self) -> str:
        from dbt_ivm.frontend.support import CONSTRUCTS

        text = CONSTRUCTS[self.construct].reason
        where = f" at line {self.line}" if self.line else ""
        clause = f": {self.detail}" if self.detail else ""
        return f"{text}{clause}{where}"

    @property
    def remedy(self) -> str:
        """What would make the view incremental, when something simple would."""
        from dbt_ivm.frontend.support import CONSTRUCTS

        return CONSTRUCTS[self.construct].remedy

    def __str__(self) -> str:
        return self.reason

"""dbt's adapter response with the ``ivm`` part; its message is the status line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse


@dataclass
class IvmResponse(AdapterResponse):
    ivm: dict[str, Any] = field(default_factory=dict)

    def to_dict(self, omit_none: bool = True, **kwargs: Any) -> dict[str, Any]:
        """All of ``ivm``, its null values included: they say "unknown"."""
        document = {"_message": self._message, "code": self.code, "rows_affected": self.rows_affected}
        return {k: v for k, v in document.items() if v is not None or not omit_none} | {"ivm": self.ivm}

"""Names resolved: stars expanded, columns qualified, ordinals and lateral aliases replaced, USING turned into ON."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import OptimizeError, SchemaError
from sqlglot.optimizer.qualify import qualify as sqlglot_qualify

from dbt_ivm.errors import UserError
from dbt_ivm.frontend.bind import PRIVATE, Bound


def qualify(bound: Bound) -> exp.Query:
    try:
        return sqlglot_qualify(
            bound.query,
            dialect="spark",
            schema=bound.schema,  # type: ignore[arg-type]
            quote_identifiers=False,
            identify=False,
        )
    except (OptimizeError, SchemaError) as error:
        raise UserError("IVM_UNRESOLVED", _readable(str(error), bound)) from error


def _readable(message: str, bound: Bound) -> str:
    """The message with the relations' real names."""

    def real(match: re.Match[str]) -> str:
        relation = bound.relations.get(match[0])
        return str(relation.name) if relation else match[0]

    return re.sub(rf"{PRIVATE}\d+", real, message)

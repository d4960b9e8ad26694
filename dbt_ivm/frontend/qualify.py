"""Names resolved: stars expanded, columns qualified, ordinals and lateral aliases replaced, USING turned into ON."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import OptimizeError, SchemaError
from sqlglot.optimizer.qualify import qualify as sqlglot_qualify

from dbt_ivm.errors import UserError
from dbt_ivm.frontend.bind import Bound, with_real_names
from dbt_ivm.frontend.joined_columns import mark_joins, settle_joined_columns


def qualify(bound: Bound) -> exp.Query:
    mark_joins(bound.query)
    try:
        query = sqlglot_qualify(
            bound.query,
            dialect="spark",
            schema=bound.schema,  # type: ignore[arg-type]
            quote_identifiers=False,
            identify=False,
        )
    except (OptimizeError, SchemaError) as error:
        raise UserError("IVM_UNRESOLVED", with_real_names(str(error), bound.relations)) from error
    settle_joined_columns(query)
    return query

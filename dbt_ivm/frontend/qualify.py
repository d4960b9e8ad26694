"""Names resolved: stars expanded, columns qualified, ordinals and lateral aliases replaced, USING turned into ON."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import OptimizeError, SchemaError
from sqlglot.optimizer.qualify import qualify as sqlglot_qualify

from dbt_ivm.errors import Refusal, UserError
from dbt_ivm.frontend.bind import Bound, with_real_names
from dbt_ivm.frontend.group_by_all import spell_out_group_by_all
from dbt_ivm.frontend.joined_columns import mark_joins, settle_joined_columns
from dbt_ivm.frontend.name_generators import name_generators, unnamed_generator
from dbt_ivm.frontend.negated import mark_negated
from dbt_ivm.frontend.parse import line_of


def qualify(bound: Bound) -> exp.Query:
    mark_joins(bound.query)
    name_generators(bound.query, bound.relations)
    unnamed = unnamed_generator(bound.query)
    try:
        query = sqlglot_qualify(
            bound.query,
            dialect="spark",
            schema=bound.schema,  # type: ignore[arg-type]
            quote_identifiers=False,
            identify=False,
        )
    except (OptimizeError, SchemaError) as error:
        if unnamed is not None:  # the name may be its column's
            raise Refusal(
                "lateral", f"{unnamed.this.sql('spark')} without names of its columns", line_of(unnamed)
            ) from error
        raise UserError("IVM_UNRESOLVED", with_real_names(str(error), bound.relations)) from error
    settle_joined_columns(query)
    spell_out_group_by_all(query)
    mark_negated(query)
    return query

"""GROUP BY ALL as Spark reads it: by every item of the select list that has no aggregate; without one, no GROUP BY.

SELECT a, b + 1, count(*) FROM t GROUP BY ALL   →   … GROUP BY a, b + 1
SELECT count(*) FROM t GROUP BY ALL             →   one row, also over no rows
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.parse import line_of


def spell_out_group_by_all(query: exp.Query) -> None:
    """To be run when stars are expanded and lateral aliases replaced."""
    from dbt_ivm.frontend.generators import is_generator
    from dbt_ivm.frontend.lower_aggregate import has_aggregates

    for select in query.find_all(exp.Select):
        group = select.args.get("group")
        if group is None or not group.args.get("all"):
            continue
        keys = [e for e in (item.unalias() for item in select.selects) if not has_aggregates([e])]
        for key in keys:
            if isinstance(key, exp.Aliases) or is_generator(key):
                raise Refusal("lateral", f"GROUP BY ALL of {key.sql(dialect='spark')}"[:60], line_of(key))
        select.set("group", exp.Group(expressions=[key.copy() for key in keys]) if keys else None)

"""What each SQL construct becomes: the table behind refusals, explain and docs/limitations.md."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Strategy(Enum):
    ALGEBRAIC = "algebraic"
    AFFECTED_KEYS = "affected keys"
    FULL = "full"


@dataclass(frozen=True)
class Construct:
    """One row of the support table; ``reason`` is shown to users when the strategy is full."""

    title: str
    strategy: Strategy
    reason: str
    remedy: str = ""


def _algebraic(title: str, how: str) -> Construct:
    return Construct(title, Strategy.ALGEBRAIC, how)


def _affected(title: str, how: str) -> Construct:
    return Construct(title, Strategy.AFFECTED_KEYS, how)


def _full(title: str, reason: str, remedy: str = "") -> Construct:
    return Construct(title, Strategy.FULL, reason, remedy)


CONSTRUCTS: dict[str, Construct] = {
    "filter": _algebraic("WHERE, HAVING", "the predicate applies to the change"),
    "project": _algebraic("SELECT expressions", "the expressions apply to the change"),
    "inner_join": _algebraic("INNER and CROSS JOIN, any predicate, self-joins", "one branch per changed table"),
    "union_all": _algebraic("UNION ALL", "the changes of the branches together"),
    "count_sum_avg": _algebraic("COUNT, SUM, AVG, with FILTER", "hidden counts and sums are adjusted"),
    "min_max": _affected("MIN, MAX", "adjusted; groups that may have lost their extremum are recomputed"),
    "distinct": _algebraic("DISTINCT, UNION", "a hidden count per distinct row"),
    "other_aggregates": _affected(
        "COUNT(DISTINCT), SUM(DISTINCT), variance and covariance family, boolean and bitwise aggregates, exact "
        "percentiles, SUM and AVG of floating point (float_sums: exact), SUM of decimals wider than 27 digits, AVG of "
        "decimals wider than 14 digits",
        "affected groups are recomputed",
    ),
    "nested_aggregate": _affected("aggregates below other operators", "affected groups are recomputed, old and new"),
    "order_by": _algebraic("ORDER BY without LIMIT", "ignored: a table has no order"),
    "outer_join": _full("LEFT, RIGHT, FULL JOIN", "outer joins have no incremental rule yet"),
    "semi_join": _full("LEFT SEMI and LEFT ANTI JOIN", "semi and anti joins have no incremental rule yet"),
    "subquery": _full(
        "subqueries in expressions (scalar, EXISTS, IN)",
        "a subquery inside an expression has no incremental rule yet",
        "join the subquery's tables in FROM",
    ),
    "window": _full("window functions, QUALIFY", "window functions have no incremental rule yet"),
    "set_operation": _full("EXCEPT, INTERSECT", "EXCEPT and INTERSECT have no incremental rule yet"),
    "grouping_sets": _full("GROUPING SETS, ROLLUP, CUBE", "grouping sets have no incremental rule yet"),
    "limit": _full("LIMIT, OFFSET", "LIMIT keeps rows that depend on all others"),
    "lateral": _full("LATERAL, LATERAL VIEW, table functions", "lateral rows have no incremental rule yet"),
    "pivot": _full("PIVOT, UNPIVOT", "PIVOT and UNPIVOT have no incremental rule yet"),
    "values": _full("VALUES in FROM", "an inline table has no incremental rule yet", "use a seed"),
    "sample": _full("TABLESAMPLE", "a sample is a different set of rows each time"),
    "time_travel": _full(
        "VERSION AS OF, TIMESTAMP AS OF", "the query pins a version itself", "read the table without a version"
    ),
    "recursive_cte": _full("WITH RECURSIVE", "recursive queries have no incremental rule yet"),
    "time_function": _full(
        "current_date, current_timestamp, now",
        "the result changes with the clock, not only with the sources",
        "store the date in a source column, or compute it in a view over this model",
    ),
    "non_deterministic": _full(
        "rand, uuid, monotonically_increasing_id and the like",
        "a non-deterministic function gives other rows each time",
    ),
    "order_dependent_aggregate": _full(
        "first, last, any_value, collect_list, collect_set, min_by, max_by",
        "the aggregate's value depends on the order rows are read",
    ),
    "aggregate_function": _full("other aggregate functions", "this aggregate function has no incremental rule"),
    "unknown_function": _full(
        "functions that are not built into Spark (UDFs, SQL functions)",
        "the function is not one of Spark's own, so nothing is known about its results",
        "write the expression in SQL",
    ),
    "map_or_variant": _full(
        "columns of type map or variant", "values of this type cannot be compared, so changes cannot be netted",
        "select the fields that are needed",
    ),
    "view_not_expandable": _full(
        "a view whose text cannot be read or parsed", "the view it reads cannot be expanded into its query"
    ),
    "asked_full": _full("any query under `meta.ivm.refresh: full`", "meta.ivm.refresh: full"),
    "unparsable": _full("SQL the parser does not know", "the query could not be analysed"),
}  # fmt: skip

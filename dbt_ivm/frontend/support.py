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
    "left_join": _affected(
        "LEFT, RIGHT, FULL JOIN, any predicate",
        "changed rows are looked up; rows that match a changed row are joined anew",
    ),
    "existence": _affected(
        "EXISTS, IN, NOT EXISTS, NOT IN, LEFT SEMI and LEFT ANTI JOIN, anywhere in WHERE, HAVING, SELECT",
        "changed rows are looked up; rows that match a changed row are looked up again",
    ),
    "scalar_subquery": _affected(
        "scalar subqueries, correlated or not", "a left join with the subquery's value per combination of outer columns"
    ),
    "partitioned_window": _affected(
        "window functions with PARTITION BY, QUALIFY, WINDOW", "affected partitions are computed anew, old and new"
    ),
    "intersect_except": _affected("INTERSECT, EXCEPT", "affected rows are compared anew"),
    "intersect_except_all": _algebraic("INTERSECT ALL, EXCEPT ALL", "copies of each row are counted on both sides"),
    "all_grouping_sets": _algebraic("GROUPING SETS, ROLLUP, CUBE", "each row counts in the group of every set"),
    "lateral_view": _algebraic(
        "LATERAL VIEW and SELECT with explode, posexplode, inline (OUTER too)", "the generator applies to the change"
    ),
    "inline_table": _algebraic("VALUES in FROM", "constant rows"),
    "any_value": _affected(
        "first, last, any_value, collect_list, collect_set, min_by, max_by",
        "where rows are equally good the choice is always the same: the smallest value, lists in order",
    ),
    "subquery": _full(
        "subqueries with LIMIT, over two levels, in join conditions, correlated set operations",
        "this form of subquery has no incremental rule yet",
        "join the subquery's tables in FROM",
    ),
    "window": _full(
        "window functions without PARTITION BY",
        "window functions without PARTITION BY: every row may depend on every other",
        "add PARTITION BY",
    ),
    "window_place": _full("window functions in other places", "a window function cannot stand here"),
    "set_operation": _full(
        "set operations BY NAME, or of types that have no common one", "this set operation has no incremental rule",
        "cast both sides to one type",
    ),
    "grouping_sets": _full("GROUP BY WITH TOTALS", "this form of GROUP BY has no incremental rule"),
    "limit": _full(
        "LIMIT, OFFSET", "LIMIT keeps rows that depend on all others",
        "rank rows within a partition, or limit in a view over this model",
    ),
    "lateral": _full(
        "LATERAL subqueries, other table functions", "lateral rows have no incremental rule yet",
        "LATERAL VIEW explode, or a join",
    ),
    "pivot_columns": _algebraic("PIVOT of one column", "an aggregate with FILTER per value"),
    "pivot": _full(
        "UNPIVOT, PIVOT of several columns", "this form of PIVOT has no incremental rule yet",
        "aggregates with FILTER; UNION ALL, or LATERAL VIEW explode of a map",
    ),
    "sample": _full("TABLESAMPLE", "a sample is a different set of rows each time"),
    "time_travel": _full(
        "VERSION AS OF, TIMESTAMP AS OF", "the query pins a version itself", "read the table without a version"
    ),
    "recursive_cte": _full("WITH RECURSIVE", "recursive queries have no incremental rule yet"),
    "clock": _affected(
        "current_date, current_timestamp, now, localtimestamp, unix_timestamp()",
        "the clock is a source: when it moved, rows that enter and leave are found by conditions on both times",
    ),
    "time_function": _full(
        "current_time, clocks of another time zone",
        "the result changes with the clock, not only with the sources",
        "use current_timestamp()",
    ),
    "non_deterministic": _full(
        "rand, uuid, monotonically_increasing_id and the like",
        "a non-deterministic function gives other rows each time",
    ),
    "order_dependent_aggregate": _full(
        "listagg, mode, histogram_numeric", "the aggregate's value depends on the order rows are read"
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

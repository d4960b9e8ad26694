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
        "percentiles (PERCENTILE_CONT, PERCENTILE_DISC, MEDIAN too), regression, TRY_SUM, SUM and AVG of "
        "floating point (float_sums: exact), SUM of decimals wider than 27 digits, AVG of decimals of more than 14",
        "affected groups are recomputed",
    ),
    "nested_aggregate": _affected("aggregates below other operators", "affected groups are recomputed, old and new"),
    "order_by": _algebraic("ORDER BY without LIMIT", "ignored: a table has no order"),
    "left_join": _affected(
        "LEFT, RIGHT, FULL JOIN, any predicate",
        "changed rows are looked up; rows that match a changed row are joined anew; "
        "LEFT JOIN along a unique key in one branch",
    ),
    "existence": _affected(
        "EXISTS, IN, NOT EXISTS, NOT IN, LEFT SEMI and LEFT ANTI JOIN, anywhere in WHERE, HAVING, SELECT",
        "changed rows are looked up; rows that match a changed row are looked up again",
    ),
    "scalar_subquery": _affected(
        "scalar subqueries, correlated or not, also with ORDER BY and LIMIT when correlated",
        "a left join with the subquery's value per combination of outer columns",
    ),
    "partitioned_window": _affected(
        "window functions with PARTITION BY, QUALIFY, WINDOW", "affected partitions are computed anew, old and new"
    ),
    "ordered_window": _affected(
        "window functions with ORDER BY and without PARTITION BY that look only back (row_number, rank, dense_rank, "
        "lag, frames up to the current row) or only ahead (lead, frames from the current row on); any over GROUP BY",
        "all rows are read; rows from the first changed one on are compared, old and new",
    ),
    "ordered_limit": _affected(
        "ORDER BY with LIMIT, OFFSET",
        "all rows are read; rows that enter, leave or move are written. Where the order leaves rows equal, the other "
        "columns decide",
    ),
    "correlated": _affected(
        "correlated subqueries with set operations, windows, DISTINCT, ORDER BY with LIMIT, or over several levels",
        "computed for the distinct values of the query around them that they use",
    ),
    "lateral_subquery": _affected(
        "LATERAL subqueries, LEFT JOIN LATERAL too", "joins; as correlated subqueries where they group or rank rows"
    ),
    "intersect_except": _affected("INTERSECT, EXCEPT", "affected rows are compared anew"),
    "intersect_except_all": _algebraic("INTERSECT ALL, EXCEPT ALL", "copies of each row are counted on both sides"),
    "all_grouping_sets": _algebraic("GROUPING SETS, ROLLUP, CUBE", "each row counts in the group of every set"),
    "lateral_view": _algebraic(
        "LATERAL VIEW, LATERAL and SELECT with explode, posexplode, inline (OUTER too), stack, json_tuple",
        "the generator applies to the change",
    ),
    "inline_table": _algebraic("VALUES in FROM", "constant rows"),
    "any_value": _affected(
        "first, last, any_value, collect_list, collect_set, listagg, min_by, max_by, mode",
        "where rows are equally good the choice is always the same: the smallest value, lists in order",
    ),
    "subquery": _full(
        "subqueries over both sides in the condition of an outer join, WITH that uses the query around a subquery",
        "this form of subquery has no incremental rule yet",
        "compute it in a derived table that is joined in FROM",
    ),
    "window": _full(
        "window functions of a whole table of rows: without PARTITION BY, and without ORDER BY or with a frame to both "
        "sides of the row; percent_rank, cume_dist, ntile",
        "window functions without PARTITION BY: every row may depend on every other, before and after it",
        "add PARTITION BY, or an ORDER BY with a frame that begins or ends at the current row, or group the rows first",
    ),
    "window_place": _full("window functions in other places", "a window function cannot stand here"),
    "set_operation": _full(
        "set operations of types that have no common one, or of expressions whose type is not known; INTERSECT and "
        "EXCEPT of maps; set operations BY NAME",
        "this set operation has no incremental rule",
        "cast both sides to one type; instead of BY NAME list the columns in one order",
    ),
    "grouping_sets": _full("GROUP BY WITH TOTALS", "this form of GROUP BY has no incremental rule"),
    "limit": _full(
        "LIMIT, OFFSET without ORDER BY", "LIMIT without ORDER BY may keep any rows",
        "add ORDER BY",
    ),
    "limit_number": _full(
        "LIMIT, OFFSET of an expression; ORDER BY before LIMIT that uses what the query does not give",
        "this form of LIMIT has no incremental rule",
        "write LIMIT as a number, and select what it is ordered by",
    ),
    "lateral": _full(
        "other table functions; generators whose columns have neither names nor a known type, or LEFT JOIN … ON a "
        "condition",
        "these generated rows have no incremental rule yet",
        "name the columns; LATERAL VIEW explode, or a join",
    ),
    "pivot_columns": _algebraic("PIVOT, of several columns too", "an aggregate with FILTER per value"),
    "unpivot": _algebraic("UNPIVOT, of several columns too", "each changed row once per entry, by one scan"),
    "pivot": _full(
        "PIVOT by a value twice, by expressions without a name, by numbers of a column of unknown type",
        "this form of PIVOT has no incremental rule yet", "name the values and aggregates; cast the column",
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
        "histogram_numeric; as window functions listagg, mode, and those that pick or list rows (first_value, "
        "collect_list, max_by, …) over a frame of RANGE between values",
        "the aggregate's value depends on the order rows are read",
    ),
    "aggregate_function": _full("other aggregate functions", "this aggregate function has no incremental rule"),
    "unknown_function": _full(
        "functions that are not built into Spark (UDFs, SQL functions)",
        "the function is not one of Spark's own, so nothing is known about its results",
        "write the expression in SQL",
    ),
    "unknown_map": _full(
        "expressions that may give a map or a variant, of a type that the planner does not know",
        "maps are compared by their entries, and what type they have here is not known",
        "cast the expression to its type",
    ),
    "view_not_expandable": _full(
        "a view whose text cannot be read or parsed", "the view it reads cannot be expanded into its query"
    ),
    "asked_full": _full("any query under `meta.ivm.refresh: full`", "meta.ivm.refresh: full"),
    "unparsable": _full("SQL the parser does not know", "the query could not be analysed"),
}  # fmt: skip

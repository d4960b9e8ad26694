"""Which functions are deterministic, which aggregates exist, and how each aggregate is maintained."""

from __future__ import annotations

from enum import Enum

from sqlglot import exp

TIME_FUNCTIONS = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentDatetime, exp.CurrentTime)
TIME_NAMES = frozenset("now curdate current_date current_timestamp localtimestamp current_time unix_timestamp".split())

NON_DETERMINISTIC = (exp.Rand, exp.Randn, exp.Uuid, exp.CurrentUser)
NON_DETERMINISTIC_NAMES = frozenset(
    "rand randn random randstr uniform uuid shuffle monotonically_increasing_id spark_partition_id input_file_name "
    "input_file_block_start input_file_block_length current_user session_user user current_catalog current_database "
    "current_schema java_method reflect try_reflect version".split()
)

ORDER_DEPENDENT = (exp.First, exp.Last, exp.AnyValue, exp.ArrayAgg, exp.ArrayUniqueAgg, exp.ArgMax, exp.ArgMin)
ORDER_DEPENDENT_NAMES = frozenset(
    "first first_value last last_value any_value collect_list collect_set array_agg listagg string_agg min_by max_by "
    "mode approx_percentile percentile_approx histogram_numeric".split()
)


class Maintenance(Enum):
    """How a measure follows a change of its group."""

    ADDITIVE = "adjusted by the change"
    EXTREMUM = "adjusted; recomputed where the extremum may have gone"
    RECOMPUTED = "recomputed for affected groups"


#: Aggregates whose value is a function of the bag of argument values: recomputing a group is exact.
RECOMPUTABLE: tuple[type[exp.Expression], ...] = (
    exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.LogicalAnd, exp.LogicalOr,
    exp.ApproxDistinct, exp.Corr, exp.CovarPop, exp.CovarSamp, exp.Median, exp.CountIf,
    exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg,
)  # fmt: skip
RECOMPUTABLE_NAMES = frozenset(
    "bool_and bool_or every some any bit_and bit_or bit_xor skewness kurtosis regr_count regr_avgx regr_avgy "
    "var_samp var_pop std stddev variance percentile median count_if".split()
)


def is_aggregate(node: exp.Expression) -> bool:
    """Whether the node is an aggregate function call, known or not."""
    if isinstance(node, exp.AggFunc):
        return True
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in RECOMPUTABLE_NAMES | ORDER_DEPENDENT_NAMES
    return isinstance(node, ORDER_DEPENDENT)

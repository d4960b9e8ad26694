"""Which functions are deterministic, which aggregates exist, and how each aggregate is maintained."""

from __future__ import annotations

from sqlglot import exp

TIME_FUNCTIONS = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentDatetime, exp.CurrentTime)
TIME_NAMES = frozenset("now curdate current_date current_timestamp localtimestamp current_time unix_timestamp".split())

NON_DETERMINISTIC = (exp.Rand, exp.Randn, exp.Uuid, exp.CurrentUser)
NON_DETERMINISTIC_NAMES = frozenset(
    "rand randn random randstr uniform uuid shuffle monotonically_increasing_id spark_partition_id "
    "input_file_name input_file_block_start input_file_block_length current_user session_user user "
    "current_catalog current_database current_schema java_method reflect try_reflect version".split()
)

#: Aggregates that give the value of some row: the smallest is as good as any, and the same each time.
ANY_VALUE = (exp.First, exp.Last, exp.AnyValue, exp.FirstValue, exp.LastValue)
#: Aggregates that list values in no order: listed in order, which is the same each time.
LISTED = (exp.ArrayAgg, exp.ArrayUniqueAgg)
#: The value beside the largest or smallest other one; among equal ones the largest or smallest value.
BESIDE_EXTREMUM = (exp.ArgMax, exp.ArgMin)

#: Aggregates that are 0 over no rows.
COUNTS = frozenset("count count_if countif approx_count_distinct approx_distinct regr_count".split())

#: Aggregates WITHIN GROUP (ORDER BY …).
SPELLED = (exp.PercentileCont, exp.PercentileDisc)

ORDER_DEPENDENT_NAMES = frozenset(("histogram_numeric",))

#: Window functions that may arrive as a bare name.
WINDOW_NAMES = frozenset("ntile cume_dist percent_rank dense_rank rank row_number nth_value lag lead".split())

#: Table-generating functions in a select list; exp.UDTF covers the others.
GENERATOR_NAMES = frozenset("inline inline_outer stack json_tuple variant_explode variant_explode_outer".split())

#: Spark's aggregates that the parser takes for ordinary functions and that have no rule.
UNSUPPORTED_AGGREGATES = frozenset(
    "product count_distinct sum_distinct listagg_distinct string_agg_distinct "
    "count_min_sketch bitmap_and_agg bitmap_or_agg bitmap_construct_agg hll_sketch_agg hll_union_agg "
    "kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kll_merge_agg_bigint kll_merge_agg_double "
    "kll_merge_agg_float theta_intersection_agg theta_sketch_agg theta_union_agg schema_of_variant_agg "
    "approx_top_k approx_top_k_accumulate approx_top_k_combine ".split()
)


#: Aggregates whose value is a function of the bag of argument values: recomputing a group is exact.
RECOMPUTABLE: tuple[type[exp.Expr], ...] = (
    exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.LogicalAnd, exp.LogicalOr,
    exp.ApproxDistinct, exp.ApproxQuantile, exp.Corr, exp.CovarPop, exp.CovarSamp, exp.Median, exp.CountIf,
    exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg, exp.Quantile, exp.Kurtosis, exp.Skewness, exp.RegrAvgx,
    exp.RegrAvgy, exp.RegrCount, exp.RegrIntercept, exp.RegrR2, exp.RegrSlope, exp.RegrSxx, exp.RegrSxy, exp.RegrSyy,
)  # fmt: skip
RECOMPUTABLE_NAMES = frozenset(
    "bool_and bool_or every some any bit_and bit_or bit_xor skewness kurtosis regr_count regr_avgx regr_avgy "
    "mean try_sum try_avg regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy var_samp var_pop std "
    "stddev variance percentile median count_if percentile_approx approx_percentile".split()
)

#: Aggregates that may arrive as a bare name; the aggregate rules decide about them.
AGGREGATE_NAMES = RECOMPUTABLE_NAMES | UNSUPPORTED_AGGREGATES | ORDER_DEPENDENT_NAMES | GENERATOR_NAMES


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node is an aggregate function call, known or not."""
    if isinstance(node, (exp.AggFunc, exp.WithinGroup)):
        return True
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in RECOMPUTABLE_NAMES | ORDER_DEPENDENT_NAMES | UNSUPPORTED_AGGREGATES
    return isinstance(node, (exp.Mode, exp.GroupConcat, *ANY_VALUE, *LISTED, *BESIDE_EXTREMUM))

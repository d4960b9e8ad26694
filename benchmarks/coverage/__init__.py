"""Which queries of TPC-H and TPC-DS are kept incrementally, and do they stay equal to a recomputation?

python -m benchmarks.coverage                          all 121 queries on DuckDB, three rounds of changes
python -m benchmarks.coverage --queries h01 ds45       some of them
python -m benchmarks.coverage --plan-only              strategies and reasons only
python -m benchmarks.coverage --spark                  on Spark and Delta, with its real change feed

The data is TPC-derived and these are not TPC results.  Query texts and data come from the generators at run time;
neither is in the repository.
"""

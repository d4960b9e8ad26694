# Everything a user or contributor runs.  PYTHON chooses the interpreter of the virtual environment.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test check fuzz fuzz-spark bench bench-quick bench-large bench-plan bench-apply bench-reads
.PHONY: coverage coverage-spark clean

help:
	@echo "make demo    a small shop on embedded Spark: build, change, refresh, compare (about 4 minutes)"
	@echo "make test    all tests, on real Spark and Delta too"
	@echo "make check   format, lint, types, tests without Spark"
	@echo "make fuzz    20,000 random histories, of single models and of lineages (DBT_IVM_HISTORIES, DBT_IVM_SEED)"
	@echo "make fuzz-spark   400 random histories on real Spark and Delta, and every model of the tests"
	@echo "make coverage     TPC-H and TPC-DS queries as models, on DuckDB; coverage-spark: on Spark and Delta"
	@echo "make bench-plan   planning time"
	@echo "make bench-apply  rebuild, merge and log on growing tables"
	@echo "make bench        foreign keys: fourteen views at scale 1; bench-quick: a few at 0.1; bench-large: at 10"

.venv: .venv/installed
.venv/installed: pyproject.toml setup.py constraints.txt
	@$(PYTHON) scripts/preflight.py
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

demo: .venv/installed
	@$(BIN)/python scripts/preflight.py --java --pyspark
	@$(BIN)/python -m examples.shop.demo

# two processes, whole files each: the random histories on one core, Spark on the other
test: .venv/installed
	@$(BIN)/python scripts/preflight.py --java --pyspark
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python scripts/generate_docs.py --check
	$(BIN)/python -m pytest -n 2 --dist loadfile tests dbt_ivm

check: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python scripts/generate_docs.py --check
	DBT_IVM_HISTORIES=16 DBT_IVM_ALL_SQL=16 DBT_IVM_STATES=500 $(BIN)/python -m pytest -q -n 2 tests dbt_ivm --ignore tests/spark --ignore tests/integration

fuzz: .venv/installed
	DBT_IVM_HISTORIES=$${DBT_IVM_HISTORIES:-20000} $(BIN)/python -m pytest -n 2 tests/property/test_histories.py tests/property/test_lineage.py
	DBT_IVM_FK_HISTORIES=$${DBT_IVM_FK_HISTORIES:-30000} $(BIN)/python -m pytest -n 2 tests/property/test_foreign_keys.py
	DBT_IVM_SUBTREES=$${DBT_IVM_SUBTREES:-4000} $(BIN)/python -m pytest -n 2 tests/property/test_subtrees.py
	DBT_IVM_ALL_SQL=$${DBT_IVM_ALL_SQL:-50000} $(BIN)/python -m pytest -n 2 tests/property/test_all_sql.py

fuzz-spark: .venv/installed
	@$(BIN)/python scripts/preflight.py --java --pyspark
	DBT_IVM_SPARK_HISTORIES=$${DBT_IVM_SPARK_HISTORIES:-100} DBT_IVM_SPARK_ALL_SQL=$${DBT_IVM_SPARK_ALL_SQL:-300} \
		$(BIN)/python -m pytest tests/spark/test_random.py
	DBT_IVM_SPARK_EVERY_MODEL=1 $(BIN)/python -m pytest tests/spark/test_all_sql.py tests/spark/test_patterns.py \
		tests/spark/test_sql_constructs.py tests/spark/test_column_types.py tests/spark/test_subtrees.py

bench-reads: .venv/installed
	$(BIN)/python -m benchmarks.reads $(ARGS)

bench-plan: .venv/installed
	$(BIN)/python -m benchmarks.planning

bench-apply: .venv/installed
	$(BIN)/python -m benchmarks.apply $(ARGS)

bench: .venv/installed
	$(BIN)/python -m benchmarks.keys $(ARGS)

bench-quick: .venv/installed
	$(BIN)/python -m benchmarks.keys --quick $(ARGS)

bench-large: .venv/installed
	$(BIN)/python -m benchmarks.keys --large $(ARGS)

coverage: .venv/installed
	$(BIN)/python -m benchmarks.coverage $(ARGS)

coverage-spark: .venv/installed
	@$(BIN)/python scripts/preflight.py --java --pyspark
	$(BIN)/python -m benchmarks.coverage --spark $(ARGS)

clean:
	rm -rf .venv examples/shop/.run

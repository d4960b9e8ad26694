# Everything a user or contributor runs.  PYTHON chooses the interpreter of the virtual environment.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test check fuzz clean

help:
	@echo "make demo    a small shop on embedded Spark: build, change, refresh, compare (about 4 minutes)"
	@echo "make test    all tests, on real Spark and Delta too"
	@echo "make check   format, lint, types, tests without Spark"
	@echo "make fuzz    random histories"

.venv: .venv/installed
.venv/installed: pyproject.toml setup.py constraints.txt
	@$(PYTHON) scripts/preflight.py
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

demo: .venv/installed
	@$(BIN)/python scripts/preflight.py --java --pyspark
	@$(BIN)/python -m examples.shop.demo

test: .venv/installed
	@$(BIN)/python scripts/preflight.py --java
	$(BIN)/python -m pytest tests dbt_ivm

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/mypy dbt_ivm
	$(BIN)/python -m pytest tests dbt_ivm -m "not spark"

fuzz: .venv/installed
	$(BIN)/python -m pytest tests/property

clean:
	rm -rf .venv examples/shop/.run

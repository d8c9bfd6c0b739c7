# Each target sets up all it needs; running it again is quick.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: help demo test lint types layers check clean

help:
	@echo "make demo    train on the embedded sample set and look at the result"
	@echo "make test    run the tests"
	@echo "make check   lint, types, layers and tests: what decides whether a change lands"
	@echo "make clean   remove environments and caches"

# The stamp changes with the dependencies only, so that nothing is installed twice.
$(VENV)/.core: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.core

demo: $(VENV)/.core
	$(BIN)/leanrank demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n auto

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks scripts
	$(BIN)/ruff format --check src tests benchmarks scripts

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

check: lint types layers test

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis demo-output build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each target sets up all it needs; running it again is quick.
PYTHON ?= python3
VENV ?= .venv
LOWEST ?= $(VENV)-lowest
DOCS ?= $(VENV)-docs
DIST ?= $(VENV)-dist
BIN := $(VENV)/bin
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check

.PHONY: help demo docs docs-publish dist test test-slow test-lowest test-all test-engines fuzz kill lint types layers check clean

help:
	@echo "make demo          train on the embedded sample set and look at the result"
	@echo "make docs          build the site into build/site"
	@echo "make dist          build wheel and source, install them into empty environments and use them"
	@echo "make test          run the tests of every command, ranker, format and export"
	@echo "make test-all      the same, the slow tests, and all with the oldest dependencies"
	@echo "make test-engines  run exports in Spark, ClickHouse, a PMML evaluator, Java, Rust and Go as well"
	@echo "make test-slow     run the slow tests alone"
	@echo "make test-lowest   run all tests with the oldest dependencies that are allowed"
	@echo "make fuzz          try random inputs: SECONDS=60 SEED=0, TARGET=... CASE=... to repeat one"
	@echo "make kill          end commands at random moments and run them again: KILLS=100 SEED=0"
	@echo "make check         lint, types, layers and tests: what decides whether a change lands"
	@echo "make clean         remove environments and caches"

# A half-made environment, from a run that was interrupted, is made again.
define make_venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "leanrank needs Python 3.11 or later, and $(PYTHON) is older: make PYTHON=/path/to/python3")'
@$(1)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(1)
endef

# The stamps change with the dependencies only, so that nothing is installed twice.
$(VENV)/.core: pyproject.toml
	$(call make_venv,$(VENV))
	$(BIN)/python $(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.dev: pyproject.toml
	$(call make_venv,$(VENV))
	$(BIN)/python $(PIP_INSTALL) -e '.[dev]'
	@touch $(VENV)/.core $@

$(VENV)/.engines: pyproject.toml
	$(call make_venv,$(VENV))
	$(BIN)/python $(PIP_INSTALL) -e '.[dev,engines]'
	@touch $(VENV)/.core $(VENV)/.dev $@

$(LOWEST)/.dev: pyproject.toml constraints-lowest.txt
	$(call make_venv,$(LOWEST))
	$(LOWEST)/bin/python $(PIP_INSTALL) -e '.[dev]' -c constraints-lowest.txt
	@touch $@

$(DOCS)/.docs: pyproject.toml
	$(call make_venv,$(DOCS))
	$(DOCS)/bin/python $(PIP_INSTALL) -e '.[docs]'
	@touch $@

$(DIST)/.dist: pyproject.toml
	$(call make_venv,$(DIST))
	$(DIST)/bin/python $(PIP_INSTALL) build twine
	@touch $@

demo: $(VENV)/.core
	$(BIN)/leanrank demo

# A link, an anchor or a name that leads nowhere fails, and so does anything from another host (with
# --quiet, MkDocs would not count its warnings).
docs: $(DOCS)/.docs
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict
	@echo "open build/site/index.html"

# One folder per minor version on the branch gh-pages, which opens at the last release; needs the right to push
# (PUSH= commits to the branch here instead). mike calls mkdocs by its name.
PUSH ?= --push
MIKE = NO_MKDOCS_2_WARNING=1 PATH="$(abspath $(DOCS))/bin:$$PATH" $(DOCS)/bin/mike
docs-publish: $(DOCS)/.docs
	$(DOCS)/bin/python $(PIP_INSTALL) mike
	$(MIKE) deploy $(PUSH) --update-aliases \
	    $(if $(filter dev,$(VERSION)),dev,$(basename $(VERSION:v%=%)) latest)
	$(if $(filter dev,$(VERSION)),,$(MIKE) set-default $(PUSH) latest)

dist: $(DIST)/.dist
	$(DIST)/bin/python scripts/check_dist.py $(addprefix --tag ,$(TAG))

# A file goes to one worker, so that two workers seldom compile the same kernels.
PYTEST := -m pytest -q -n auto --dist loadfile

test: $(VENV)/.dev
	$(BIN)/python $(PYTEST) -m "not slow"

test-slow: $(VENV)/.dev
	$(BIN)/python $(PYTEST) -m slow

test-all: test test-slow test-lowest

test-engines: $(VENV)/.engines
	LEANRANK_ENGINES=1 $(BIN)/python -m pytest -q -n 2 tests/model/verify

test-lowest: $(LOWEST)/.dev
	$(LOWEST)/bin/python $(PYTEST)

SECONDS ?= 60
SEED ?= 0
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED) \
	    $(addprefix --target ,$(TARGET)) $(addprefix --case ,$(CASE)) \
	    $(addprefix --inputs ,$(INPUTS)) $(addprefix --jobs ,$(JOBS))

KILLS ?= 100
kill: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz.kills --kills $(KILLS) --seed $(SEED)

lint: $(VENV)/.dev
	$(BIN)/ruff check src papers tests benchmarks scripts examples
	$(BIN)/ruff format --check src papers tests benchmarks scripts examples

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

check: lint types layers test

clean:
	rm -rf $(VENV) $(LOWEST) $(DOCS) $(DIST) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis demo-output build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The pip that comes with Python 3.11 takes longer to choose the files than to install them.
PIP := pip==25.3
# Most of what is installed is never imported; what is, is compiled then.
QUIETLY := --quiet --disable-pip-version-check --no-deps --no-compile
# Where byte code may not be kept, each of the many processes of a stack compiles all of PML again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup test walkthroughs demo check format typecheck bench bench-speculation bench-discovery bench-learning bench-end-to-end drill simulate chaos mutants up down clean

help: ## List what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "PML needs Python 3.11 or newer: make PYTHON=python3.12 …" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing PML and its pinned requirements into $(VENV) (once) …"
	@$(BIN)/python -m pip install $(QUIETLY) $(PIP) || echo "Going on with the pip that is there." >&2
	@$(BIN)/python -m pip install $(QUIETLY) -r requirements.lock || { echo "A package could not be fetched. PML needs a Python package index: check the network or PIP_INDEX_URL, then run make again." >&2; exit 1; }
	@$(BIN)/python -m pip install $(QUIETLY) --no-build-isolation -e .
	@touch $@

setup: $(STAMP) ## Install everything into .venv

SEEDS ?= 2000
simulate: $(STAMP) ## Play SEEDS=2000 deterministic sessions with every fault, and hunt every mutant
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) --mutants all --branches 60

MINUTES ?= 10
SEED ?= 1
chaos: $(STAMP) ## Play SEED=1 against real parts for MINUTES=10 while they are killed, stopped and paused
	@$(BIN)/python -m tests.chaos --minutes $(MINUTES) --seed $(SEED)

SAMPLE ?= 0
mutants: $(STAMP) ## Change the core in one place at a time; its tests must notice 85 % (SAMPLE=700: some of them)
	@$(BIN)/python -m tests.mutation --sample $(SAMPLE) --jobs 2

demo: $(STAMP) ## Set everything up and run the demo workflows with and without speculation
	@$(BIN)/pml demo

# Most tests wait for a broker: five at a time keep two cores busy. Slow files and others take turns (conftest.py).
test: $(STAMP) ## Set everything up and run every test
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 5 --dist loadfile --no-loadscope-reorder

check: $(STAMP) typecheck ## Formatting, lint, types and the direction of imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports

format: $(STAMP) ## Format the code
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

typecheck: $(STAMP) .typing
	@MYPYPATH=.typing $(BIN)/mypy -p pml -p benchmarks

.typing: Makefile
	@mkdir -p .typing/pml && for room in schemas processors clickhouse streams deploy; do ln -sfn ../../$$room .typing/pml/$$room; done && touch .typing

# What PML is measured beside; nothing that it needs itself is moved to another version for it.
with_baselines = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock $(1) || { echo "$(1) could not be fetched, beside which PML is measured: check the network or PIP_INDEX_URL, then run make again." >&2; exit 1; }

bench: $(STAMP) ## Measure ratios, each beside its baseline (JSON under benchmarks/results)
	@$(call with_baselines,dbos==3.2.0)
	@$(BIN)/python -m benchmarks

bench-speculation: $(STAMP) ## Measure what speculation is worth on the workflows under PML_DATASETS
	@$(BIN)/python -m benchmarks.speculation

bench-discovery: $(STAMP) ## Measure how well intents find their tools in the data sets under PML_DATASETS
	@$(BIN)/python -m benchmarks.discovery

bench-learning: $(STAMP) ## Measure how well the next tool is predicted under PML_DATASETS, and what learning costs
	@$(call with_baselines,jax==0.10.2 threadpoolctl==3.8.0)
	@$(BIN)/python -m benchmarks.learning
	@$(BIN)/python -m benchmarks.learning.attention
	@$(BIN)/python -m benchmarks.learning.hyperpaths
	@$(BIN)/python -m benchmarks.learning.serving

bench-end-to-end: $(STAMP) ## Measure what prediction is worth to agents in the sessions under PML_DATASETS
	@$(BIN)/python -m benchmarks.end_to_end.live

walkthroughs: $(STAMP) ## Walk through every page for newcomers, each command of it
	@PML_WALKTHROUGHS=all $(BIN)/python -m pytest -n 2 --dist load tests/docs/test_walkthroughs.py

# Most of the time a drill waits: for a group to notice who is gone, for a deadline. Three have a stack each.
drill: $(STAMP) ## Hit every named kill point 20 times, take the store away for ten minutes
	@PML_DRILL_ROUNDS=20 PML_DRILL_STORE_AWAY_S=600 $(BIN)/python -m pytest -n 3 --dist worksteal tests/drills

up: $(STAMP) ## Start the local stack in the background
	@$(BIN)/pml up --detach

down: $(STAMP) ## Stop the local stack
	@$(BIN)/pml down

clean: ## Remove what was built; data under .pml stays
	@rm -rf $(VENV) .typing build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

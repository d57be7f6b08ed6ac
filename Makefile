# Everything runs in .venv, which each target sets up when it is missing or older than what it is made from.
# Needs Python 3.11 or newer, make and git; name another interpreter with: make test PYTHON=/path/to/python3.12

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

BIN := .venv/bin
READY := .venv/.ready
SUITABLE := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c '$(SUITABLE)' 2>/dev/null && { echo $$python; break; }; done)

.PHONY: help setup demo test check bench bench-quick race drain fmt clean

help: ## Show this list.
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' Makefile | while IFS=$$'\t' read -r name text; do \
		printf '  make %-12s %s\n' "$$name" "$$text"; done

setup: $(READY) ## Make or refresh .venv (the other targets do it by themselves).

demo: $(READY) ## Watch a real plan being worked through, a kill -9 in the middle (DEMO=--fast for seconds).
	@$(BIN)/punch demo $(DEMO)

test: $(READY) ## Run all tests with branch coverage (PYTEST="-k name" narrows, without the coverage floor).
	@$(if $(PYTEST),$(BIN)/pytest $(PYTEST),$(covered_tests))

check: $(READY) ## Check format, lint, types and generated files.
	@echo 'format'; $(BIN)/ruff format --quiet --check .
	@echo 'lint'; $(BIN)/ruff check --quiet .
	@echo 'types'; $(BIN)/basedpyright --warnings
	@echo 'generated files'; $(BIN)/python -m punchlist_schemas.export --check

bench: $(READY) ## Measure against the machine's own anchors, in full.
	@$(BIN)/python tests/bench/run.py

bench-quick: $(READY) ## The same figures from fewer rounds.
	@$(BIN)/python tests/bench/run.py --quick

race: $(READY) ## Start 50 daemons at once, 50 times: one may live (RACE="--starters 8 --rounds 4 --seed 1").
	@PYTHONPATH=tests/support $(BIN)/python tests/crash/race.py $(RACE)

drain: $(READY) ## Let 64 workers drain 10,000 tasks while they and the daemon are killed (DRAIN="--tasks 1000 --seed 1").
	@PYTHONPATH=tests/support $(BIN)/python tests/crash/drain.py $(DRAIN)

fmt: $(READY) ## Format, fix what lint can fix, write the generated files anew.
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .
	@$(BIN)/python -m punchlist_schemas.export

clean: ## Remove caches, coverage data and build results (.venv stays).
	@rm -rf build dist htmlcov .pytest_cache .ruff_cache .hypothesis .coverage .coverage.* .pytest.output
	@find daemon client schemas tests -name __pycache__ -type d -prune -exec rm -rf {} +

# pytest's closing line is shown once more behind the coverage report: whoever reads only the end learns the result.
define covered_tests
trap 'rm -f .pytest.output' EXIT; \
rm -f .coverage .coverage.*; \
$(BIN)/coverage run -m pytest $(if $(MAKE_TERMOUT),--color=yes) | tee .pytest.output; \
$(BIN)/coverage combine --quiet; \
floor=0; $(BIN)/coverage report || floor=$$?; \
tail -n 1 .pytest.output; \
exit $$floor
endef

# The second pip is the pinned one: its console scripts start without importing re.
$(READY): pyproject.toml requirements/dev.txt
	@'$(or $(PYTHON),python3)' -c '$(SUITABLE)' 2>/dev/null || { \
		echo 'punchlist needs Python 3.11 or newer and found none; install it or name one: make PYTHON=/path/to/python3.11' >&2; \
		exit 1; }
	@echo 'setting up .venv'
	@test -x $(BIN)/python -a -x $(BIN)/pip || '$(PYTHON)' -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --requirement requirements/dev.txt
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation --editable .
	@touch $@

PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup demo serve test check bench bench-learning clean
help:           ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

setup: .venv/ready ## make .venv and install casebank into it

.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,ray,demo,scienceworld,dev]'
	touch $@

demo: setup     ## run the service on its own Postgres and show what memory changes
	$(BIN)/casebank demo

serve: setup    ## keep the service running (state in CASEBANK_HOME)
	$(BIN)/casebank serve

test: setup check ## run every check and every test
	$(BIN)/python -m pytest

check: setup    ## formatting, lint, types and layering
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup    ## measure speed and memory, as ratios within one run
	$(BIN)/casebank bench all

bench-learning: setup ## measure what the policy learns (six minutes; data: see CASEBANK_DATA)
	$(BIN)/casebank bench learning

clean:          ## remove the environment and the caches
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

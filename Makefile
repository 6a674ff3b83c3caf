PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
CHECKS := $(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/lint-imports
TYPES := $(BIN)/mypy
PYTEST := env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX=$(CURDIR)/.pytest_cache/bytecode $(BIN)/python -m pytest

.PHONY: help setup demo serve test test-mcp test-clients test-frameworks client-types check bench bench-cost bench-replay clean
help:           ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

setup: .venv/all ## make .venv and install casebank into it, with every extra

# One environment, which grows: each stamp says what is in it, and a changed dependency makes all of them stale.
# Packages are compiled when they are first imported and not at installation: most modules never are.
.venv/demo: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --no-compile -e '.[plots]'
	touch $@

.venv/all: pyproject.toml clients/python/pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --no-compile -e '.[plots,ray,scienceworld,mcp,dev]' -e clients/python
	touch .venv/demo $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "casebank needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv .venv

demo: .venv/demo ## run the service on its own Postgres and show what memory changes
	$(BIN)/casebank demo

serve: .venv/demo ## keep the service running (state in CASEBANK_HOME)
	$(BIN)/casebank serve

# Every process of the tests shares one cache of bytecode, also where the environment forbids to write any. A collection
# fills a new one: each process would compile for itself what it does not find. The check of types, which takes one
# processor for a minute or two, runs beside all that.
test: setup ## run every check and every test
	$(CHECKS)
	$(TYPES) & types=$$!; \
	test -d .pytest_cache/bytecode || $(PYTEST) --collect-only -qq > /dev/null 2>&1; \
	$(PYTEST) -n auto --dist loadfile --no-loadscope-reorder; tests=$$?; \
	wait $$types || { echo 'the check of types failed: make check'; exit 1; }; \
	exit $$tests

test-mcp: setup ## run the protocol's own conformance suite against /mcp (needs Node)
	CONFORMANCE=1 $(BIN)/python -m pytest -q -rs tests/app/end_to_end/test_mcp_conformance.py

test-clients: setup ## build the TypeScript client and run its tests (needs Node)
	CLIENTS=1 $(BIN)/python -m pytest -q -rs tests/clients/test_typescript_client.py

client-types: setup ## make the TypeScript client's types again, after a change of the API (needs Node)
	$(BIN)/python -m tests.clients.typescript_document > clients/typescript/openapi.json
	cd clients/typescript && npm ci --no-audit --no-fund && npm run types

# An environment of its own, which ends with the service's packages: the service is started by the interpreter that runs the tests.
.venv-frameworks/all: clients/python/pyproject.toml constraints-frameworks.txt | .venv/all
	$(PYTHON) -m venv .venv-frameworks
	.venv-frameworks/bin/pip install --quiet --disable-pip-version-check -c constraints-frameworks.txt \
		-e 'clients/python[openai-agents,langchain,langgraph,pydantic-ai,claude-agent-sdk]' pytest pytest-asyncio pytest-timeout \
		langgraph-checkpoint-conformance
	.venv-frameworks/bin/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib").replace(".venv-frameworks", ".venv"))' > .venv-frameworks/service
	mv .venv-frameworks/service "$$(.venv-frameworks/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/casebank_service.pth"
	touch $@

test-frameworks: .venv-frameworks/all ## test the Python client inside the agent frameworks it has modules for
	.venv-frameworks/bin/python -m pytest -q -rs tests/clients/frameworks

check: setup    ## formatting, lint, types and layering
	$(CHECKS) && $(TYPES)

bench: setup    ## measure speed and memory, as ratios within one run
	$(BIN)/python -m bench all

bench-cost: setup ## compare what a case costs with the last release
	$(BIN)/python -m bench cost

bench-replay: setup ## measure which order tells a plan that works first (minutes; data: see CASEBANK_DATA)
	$(BIN)/python -m bench replay

clean:          ## remove the environment and the caches
	rm -rf .venv .venv-frameworks clients/typescript/node_modules clients/typescript/dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

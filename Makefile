# The commands of this repository. `make` alone lists them.

VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
PYTHON ?=
PYTEST_WORKERS ?= 2
ARGS ?=

# A stamp is named after what it installed, so a changed pin or dependency misses it.
KEY := $(shell cat pyproject.toml requirements/runtime.txt requirements/dev.txt | cksum | cut -d' ' -f1)
RUNTIME := $(VENV)/.runtime-$(KEY)
DEV := $(VENV)/.dev-$(KEY)
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -n $(PYTEST_WORKERS)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-sqlite test-postgres bench bench-peers soak lint format check clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

setup: $(DEV)  ## make .venv and install everything (instant when nothing changed)
	@echo "$(VENV) is ready"

demo: $(RUNTIME)  ## run the licence audit; ONCE=1 ends with the run, INPUT=path audits a requirements file
	@$(BIN)/python manage.py stateknot_demo $(if $(ONCE),--once) $(if $(INPUT),--input "$(INPUT)")

test: $(DEV)  ## run every test, on SQLite and on PostgreSQL
	@.ci/chromium
	@status=0; \
	$(MAKE) --no-print-directory test-sqlite || status=1; \
	$(MAKE) --no-print-directory test-postgres || status=1; \
	exit $$status

test-sqlite: $(DEV)  ## run every test on SQLite; ARGS= goes to pytest
	@$(PYTEST) --database=sqlite $(ARGS)

# The kernel and the architecture know no database.
test-postgres: $(DEV)  ## run the tests that know a database on PostgreSQL
	@$(PYTEST) --database=postgres --ignore=tests/kernel --ignore=tests/architecture $(ARGS)

bench: $(DEV)  ## measure rates and stored bytes beside raw commits; ARGS= goes to the bench
	@$(BIN)/python -m bench $(ARGS)

bench-peers: $(DEV) $(PEERS)  ## the same, with LangGraph and DBOS in the same run
	@$(BIN)/python -m bench --peers $(PEERS)/bin/python $(ARGS)

soak: $(DEV)  ## drive 2,000 runs while workers are killed; ARGS="--seconds 60 --runs 300" for less
	@$(BIN)/python -m bench.soak $(ARGS)

lint: $(DEV)  ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(DEV)  ## let ruff mend what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

check:  ## lint and test, as CI does
	@.ci/run

clean:  ## remove .venv and what runs left in var/
	rm -rf $(VENV) $(PEERS) var .mypy_cache .ruff_cache .pytest_cache

$(BIN)/python:
	@for python in $(PYTHON) python3.11 python3.12 python3.13 python3; do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    $$python -m venv $(VENV) && exit 0; \
	    rm -rf $(VENV); echo "$$python cannot make a virtual environment; on Debian install python3-venv"; exit 1; \
	  fi; \
	done; \
	echo "CPython 3.11 or newer is needed; name it with make PYTHON=/path/to/python"; exit 1

$(RUNTIME): | $(BIN)/python
	@echo "Installing what StateKnot needs into $(VENV) ..."
	@$(PIP) install -r requirements/runtime.txt
	@$(PIP) install --no-deps --editable .
	@rm -f $(VENV)/.runtime-* && touch $@

$(DEV): $(RUNTIME)
	@echo "Installing the development tools into $(VENV) ..."
	@$(PIP) install -r requirements/dev.txt
	@rm -f $(VENV)/.dev-* && touch $@

# A peer that cannot be installed is left out: the bench says so and measures the rest.
$(PEERS): | $(BIN)/python
	@echo "Installing LangGraph and DBOS into $(PEERS) ..."
	@$(BIN)/python -m venv $(PEERS)
	@for packages in "langgraph langgraph-checkpoint-postgres langgraph-checkpoint-sqlite" dbos "psycopg[binary]"; do \
	  $(PEERS)/bin/python -m pip -qq --disable-pip-version-check install $$packages \
	    || echo "could not install $$packages; it is left out"; \
	done

# `make` alone lists the targets. Each sets up what it needs; nothing outside this folder is
# touched, except that `chromium` asks the system's package manager for a browser when it may.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
MAKEFLAGS += --no-print-directory

PYTHON := .venv/bin/python
READY := .venv/.ready
COMPILE := .venv/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make requirements"

# Arguments for the command that a target runs: make demo ARGS=--once
ARGS ?=
# Arguments for pytest: make test PYTEST="-k ledger"
PYTEST ?= -n 2 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup demo up test test-full fuzz bench lint format types generated \
	check-generated requirements chromium clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(READY) ## create .venv with everything in it (runs once)

demo: $(READY) ## send bundled agent runs, show what was recorded (ARGS=--once: and stop)
	@.venv/bin/facta demo $(ARGS)

up: $(READY) ## start the collector, the store and the dashboard
	@.venv/bin/facta up $(ARGS)

test: $(READY) chromium lint types check-generated ## everything that must hold before a change goes in
	@$(PYTHON) -m pytest $(PYTEST) $(ARGS)

test-full: $(READY) chromium lint types check-generated ## the same with the long forms (hours)
	@FACTA_FULL=1 $(PYTHON) -m pytest $(PYTEST) -m "" --timeout 3600 $(ARGS)

fuzz: $(READY) ## 100,000 generated and mutated inputs (FUZZ_CASES=…)
	@FUZZ_CASES=$${FUZZ_CASES:-100000} $(PYTHON) -m pytest -m fuzz --timeout 0 $(ARGS)

bench: $(READY) ## measure, print figures
	@$(PYTHON) benchmarks/run.py $(ARGS)

lint: $(READY) ## ruff: rules and format
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .

format: $(READY) ## let ruff rewrite what it can
	@.venv/bin/ruff check --quiet --fix .
	@.venv/bin/ruff format --quiet .

types: $(READY) ## mypy, strict
	@.venv/bin/mypy

generated: $(READY) ## rewrite the generated documents
	@$(PYTHON) docs/generated.py

check-generated: $(READY) ## fail when a generated document is stale
	@$(PYTHON) docs/generated.py --check

requirements: $(READY) ## compile requirements/*.txt again (ARGS=--upgrade: newest versions)
	@$(COMPILE) $(ARGS) requirements/bootstrap.in -o requirements/bootstrap.txt
	@$(COMPILE) $(ARGS) pyproject.toml --all-extras --group dev -o requirements/dev.txt

# Debian's package, because a browser downloaded by a test framework needs a host of its own.
chromium: ## a browser for the browser tests, from the system's packages
	@command -v chromium >/dev/null && exit 0
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	  echo "chromium: installing the system's package" >&2
	  apt="apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=30"
	  { $$apt update && DEBIAN_FRONTEND=noninteractive \
	      $$apt install --yes --no-install-recommends chromium; } >/dev/null || true
	fi
	command -v chromium >/dev/null && exit 0
	echo "*** NO BROWSER: no chromium on PATH, and none could be installed." >&2
	echo "*** The browser tests will be SKIPPED. Install the package chromium to run them." >&2

clean: ## remove what the targets made
	rm -rf .venv .tools dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The venv module is missing on a bare Debian; then uv, fetched by pip, makes the environment.
# uv installs the pinned set in a quarter of pip's time; where it cannot reach what pip can
# (a mirror that only pip is configured for), pip installs the same files by the same hashes.
$(READY): pyproject.toml requirements/bootstrap.txt requirements/dev.txt
	@python3 -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Facta needs Python 3.11 or newer")'
	if [ ! -x $(PYTHON) ] || ! $(PYTHON) -c '' ; then
	  echo "setup: creating .venv" >&2
	  python3 -m venv --clear .venv >/dev/null 2>&1 || rm -rf .venv
	fi
	if [ -x .venv/bin/uv ]; then
	  uv=.venv/bin/uv
	elif [ -x .venv/bin/pip ]; then
	  $(PYTHON) -m pip install --quiet --require-hashes -r requirements/bootstrap.txt
	  uv=.venv/bin/uv
	else
	  python3 -m pip install --quiet --require-hashes --target .tools -r requirements/bootstrap.txt
	  uv=.tools/bin/uv
	  $$uv venv --quiet --no-config --python "$$(command -v python3)" .venv
	fi
	echo "setup: installing the pinned packages" >&2
	$$uv pip install --quiet --no-config --python $(PYTHON) --require-hashes -r requirements/dev.txt \
	  || $(PYTHON) -m pip install --quiet --require-hashes -r requirements/dev.txt
	$$uv pip install --quiet --no-config --python $(PYTHON) --no-deps --no-build-isolation --editable .
	touch $@

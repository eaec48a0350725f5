# What one types here. `make demo` and `make test` are enough on a fresh machine: each builds .venv
# once, from constraints.txt, and again only when the project's requirements change.

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
PIP := $(PY) -m pip --disable-pip-version-check

PYTHON ?=#    the interpreter .venv is built from; default: the first of CANDIDATES that will do
STEPS ?= 50#   acts of a chaos run:                   make chaos STEPS=1000 SEED=7
SEED ?=#      its choices, default the machine's
ARGS ?=#      passed to demo, bench and shots:        make demo ARGS=--headless
TESTS ?=#     what `make test` runs, default all:      make test TESTS=tests/unit
JOBS ?= 2#    worker processes of the fast tests
CANDIDATES := python3.11 python3.12 python3.13 python3

.PHONY: help venv demo test chaos mutants real-venv test-real docs check format bench shots pins clean gone
.DEFAULT_GOAL := help

help:
	@echo 'make demo    a 2P1D group on embedded hosts, with the console (ARGS=--headless: no screen)'
	@echo 'make test    every test (TESTS=PATH selects)'
	@echo 'make chaos   random wishes and faults on living groups (STEPS=1000 SEED=7)'
	@echo 'make mutants change every rule a little; each change must fail a test (ARGS=pairing)'
	@echo 'make test-real  a group of real vLLM engines on this CPU (real-venv builds them: 3 GB)'
	@echo 'make check   lint, format, types, direction of imports'
	@echo 'make format  let the linter and the formatter repair what they can'
	@echo 'make bench   speed, beside a rival in the same run'
	@echo 'make docs    write the pages of docs/ that follow from code'
	@echo 'make shots   redraw the pictures in screenshots/'
	@echo 'make pins    take the newest allowed releases into constraints.txt'
	@echo 'make clean   remove .venv and every cache'

venv: $(STAMP)

demo: $(STAMP)
	@$(PY) -m pdtui demo $(ARGS)

test: $(STAMP)
	@$(PY) -m tests.lanes --jobs $(JOBS) $(TESTS)

chaos: $(STAMP)
	@$(PY) -m tests.chaos --steps $(STEPS) $(if $(SEED),--seed $(SEED))

mutants: $(STAMP)
	@$(PY) -m tests.mutants $(ARGS)

check: $(STAMP)
	$(PY) -m ruff check . screenshots/*.py
	$(PY) -m ruff format --check . screenshots/*.py
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

format: $(STAMP)
	$(PY) -m ruff check --fix . screenshots/*.py
	$(PY) -m ruff format . screenshots/*.py

docs: $(STAMP)
	@$(PY) -m docs.generate

# Real engines, on a CPU: never part of `make test`.
real-venv:
	@tests/real/setup.sh .real

test-real: $(STAMP)
	@$(PY) -u -m tests.real $(ARGS)

bench: $(STAMP)
	@$(PY) -m tests.bench $(ARGS)

shots: $(STAMP)
	@$(PY) -m screenshots.shoot $(ARGS)

# A venv that works is kept; one whose interpreter is gone, or older than 3.11, is built anew.
$(STAMP): pyproject.toml constraints.txt $(if $(shell $(PY) -c 'print(1)' 2>/dev/null),,gone)
	@set -eu; \
	if ! $(PY) -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  chosen=; bare=; \
	  for python in $(or $(PYTHON),$(CANDIDATES)); do \
	    version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2]); sys.exit(sys.version_info < (3, 11))' 2>/dev/null) || continue; \
	    if "$$python" -c 'import venv; from ensurepip import bootstrap' 2>/dev/null; then chosen=$$python; break; fi; \
	    bare=$${bare:-$$version}; \
	  done; \
	  if [ -z "$$chosen" ] && [ -n "$$bare" ]; then \
	    echo "Python $$bare is here, but not its venv module. On Debian and Ubuntu:  apt install python$$bare-venv" >&2; exit 1; \
	  fi; \
	  if [ -z "$$chosen" ]; then \
	    echo "No Python 3.11 or newer among: $(or $(PYTHON),$(CANDIDATES)). On Debian 12:  apt install python3.11 python3.11-venv" >&2; exit 1; \
	  fi; \
	  echo "Building $(VENV) with $$chosen ($$version); this happens once and takes about a minute."; \
	  "$$chosen" -m venv --clear $(VENV); \
	fi; \
	$(PIP) install -qq --constraint constraints.txt hatchling editables; \
	$(PIP) install -qq --no-build-isolation --constraint constraints.txt --editable '.[dev,demo]'; \
	touch $@

gone:

pins:
	@set -eu; fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	$(or $(PYTHON),python3.11) -m venv "$$fresh"; \
	"$$fresh/bin/pip" install -qq hatchling editables; \
	"$$fresh/bin/pip" install -qq --no-build-isolation --editable '.[dev,demo]'; \
	{ grep '^#' constraints.txt; "$$fresh/bin/pip" freeze --exclude-editable; } > "$$fresh/pins"; \
	cp "$$fresh/pins" constraints.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .lanes dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Everything that a person or CI does with this repository. Needs Python >= 3.11 and make, nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One more than there are cores: many tests wait for a terminal, a server or a time limit.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

# As pip does: behind a company's proxy only the system knows the certificate.
export UV_SYSTEM_CERTS ?= 1

.PHONY: help install demo test coverage check format bench wheel lock clean

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

install: $(STAMP)  ## install ra and its tools into .venv

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ra needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@$(BIN)/python -m tests.entry_point
	@touch $(STAMP)

demo: $(STAMP)  ## the tour of ra, played by itself in 20 seconds; no key, no network
	@bash docs/demo.sh $(BIN)

test: $(STAMP)  ## run the tests; COVERAGE=1 writes down what they reach
	$(if $(COVERAGE),rm -rf .coverage)
	$(BIN)/$(if $(COVERAGE),coverage run,python) -m pytest -n $(WORKERS) --dist worksteal

coverage: $(STAMP)  ## run the tests, and fail when they reach too little of the code that must not be wrong
	$(MAKE) test COVERAGE=1
	$(BIN)/python -m tests.coverage_gate

check: $(STAMP)  ## lint, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if command -v tsc >/dev/null; then tsc -p ra/web/page/jsconfig.json; \
	elif npx --no-install tsc --version >/dev/null 2>&1; then npx --no-install tsc -p ra/web/page/jsconfig.json; \
	else echo "skipped: the types of the page (tsc is not installed: npm install --global typescript)"; fi

format: $(STAMP)  ## format and mend what can be mended
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .

bench: $(STAMP)  ## measure start-up, steps and the engine, as ratios in one run; RA_TRACE=FILE: replay that transcript; RA_BFCL=FILE.whl: ask its memory questions; RA_BEFORE=RA: beside another version
	$(BIN)/python -m tests.bench

wheel: $(STAMP)  ## build the wheel, install it in a fresh environment, and ask it something there
	rm -rf dist
	$(BIN)/python -m hatchling build -t wheel
	@bash docs/try-wheel.sh $(BIN) dist/*.whl

lock: $(STAMP)  ## pin the dependencies anew
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --group dev pyproject.toml -o requirements.lock

clean:  ## remove what make made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage dist

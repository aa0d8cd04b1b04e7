# make demo    run the showcase
# make test    run every check: lint, format, types, layers, tests
# make conformance   run every operator case beside the official interpreter
# make clean   remove the virtual environment and caches
#
# Both targets need Python 3.10 or newer and make, nothing else: they create .venv here and install
# into it. `make demo PYTHON=python3.12` picks another interpreter.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Every distribution of this repository that lies here: the core, the example, the delegates.
PROJECTS := pyproject.toml $(wildcard plugins_example/pyproject.toml delegates/*/pyproject.toml)
EDITABLE := $(addprefix --editable ./,$(patsubst %/,%,$(dir $(PROJECTS))))

.PHONY: help demo test conformance lint types clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: $(VENV)/installed
	@$(BIN)/python docs/demo/demo.py

test: lint
	$(BIN)/python -m pytest

conformance: $(VENV)/installed-test
	@$(BIN)/python tests/conformance/run.py

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then $(MAKE) types; \
	  else echo "mypy is left out: NumPy's types for Python 3.10 are older than those used here."; fi

types: $(VENV)/installed-test
	$(BIN)/mypy
	$(BIN)/mypy docs/demo/demo.py docs/demo/make_sines.py docs/generate_operators.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

# A stamp file records each step, so that it runs again only when a pyproject.toml changes.

$(VENV)/created:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "Delegraph needs Python 3.10 or newer, and there is no $(PYTHON) here." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "Delegraph needs Python 3.10 or newer; $(PYTHON) is: $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one, for example: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "$(PYTHON) cannot create a virtual environment (see above)." >&2; \
	  echo "On Debian and Ubuntu this installs what is missing: apt install python3-venv" >&2; exit 1; }
	@touch $@

$(VENV)/installed: $(VENV)/created $(PROJECTS)
	@echo "Installing Delegraph and its plugins into $(VENV) ..."
	@$(PIP) install --quiet $(EDITABLE)
	@touch $@

# `pip install --group` came with pip 25.1, newer than the pip of most Pythons.
$(VENV)/installed-test: $(VENV)/installed
	@echo "Installing the test tools into $(VENV) ..."
	@$(PIP) install --quiet --upgrade "pip>=25.1"
	@$(PIP) install --quiet --group test
	@touch $@

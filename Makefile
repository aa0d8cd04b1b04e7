# make demo    run the showcase
# make check   check what changed since BASE=main, in about a minute: lint, format, types, layers, its tests
# make test    lint, format, all tests with a sample of their repeated cases, in minutes; less where nothing has changed
# make test-all  the same, then what it leaves out: the other cases, types, layers
# make test-engines  test the delegates of heavy engines, each in its own environment (downloads)
# make test-scale    test what runs on other engines, each in its own environment (downloads)
# make conformance   run every operator case beside the official interpreter
# make mutants run mutation tests: change the code and see that tests fail (see docs/mutation-tests.md)
# make fuzz    try damaged models on the core and on delegates (see docs/fuzzing.md)
# make soak    use interpreters for HOURS, with failures and interrupts, and watch memory and answers
# make litert-matrix run delegates in many releases of the official runtime (downloads)
# make flex-oracle   run Flex models beside the last TensorFlow whose interpreter does (2 downloads)
# make tflm-oracle   run micro models beside TensorFlow Lite Micro's own interpreter (1 download)
# make test-aarch64  test a wheel for AArch64 under emulation, for hours (downloads, qemu-user); SMOKE=1 for minutes
# make bench   run every benchmark, short; one at length: make bench ONLY=framework ARGS="--seconds 20"
# make docs    build the documentation site into site/ and check its links
# make dist    build every wheel and sdist into dist/, check them, try them in an empty environment
# make clean   remove the virtual environment and caches
#
# demo and test need Python 3.10 or newer and make, nothing else: they create .venv here and install
# into it. `make demo PYTHON=python3.12` picks another interpreter.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Every distribution of this repository that lies here: the core, the example, the delegates.
# Those of heavy engines have environments of their own: make test-engines.
ENGINES := jax openvino
ENGINE_PROJECTS := $(ENGINES:%=delegates/%/pyproject.toml)
PROJECTS := pyproject.toml $(filter-out $(ENGINE_PROJECTS), \
  $(wildcard plugins_example/pyproject.toml delegates/*/pyproject.toml))
COMPILED := delegates/numba_cpu/
PURE := $(filter-out $(COMPILED),$(dir $(PROJECTS)))

# pip need not compile modules: Python does when it first imports one, and most are never imported. It keeps
# what it has compiled, since tests start many processes.
export PIP_NO_COMPILE := 1
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo check test test-rest test-all test-engines test-scale conformance fuzz soak mutants litert-matrix flex-oracle flex-record tflm-oracle tflm-record test-aarch64 bench docs dist \
  lint layers types types-of-all clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: $(VENV)/installed
	@echo "Running the showcase, docs/demo/demo.py ..."
	@$(BIN)/python docs/demo/demo.py

# SEED draws the cases of a sample (tests/sampling.py), and Hypothesis starts from it, so `make test
# SEED=...` repeats a run; where CI is set Hypothesis takes the same examples each time. Kernels of
# numba_cpu that were edited since the installation are compiled before, by one process for all.
# There is a process more than cores, since many tests wait for children; threads of BLAS would only
# wait for each other.
# Where nothing has changed since a sample passed, `make test` runs a fourth of another (tests/unchanged.py);
# `make test FRESH=1` runs all of it, and so does a SEED.
FRESH := $(or $(FRESH),$(SEED))
SEED := $(or $(SEED),$(shell date +%s))
WORKERS = $$($(BIN)/python -c 'import os; print((os.cpu_count() or 1) + 1)')
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal --hypothesis-seed $(SEED)

test test-rest: export OPENBLAS_NUM_THREADS := 1
test: export FRESH := $(FRESH)
test: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/delegraph numba warmup
	$(BIN)/python tests/unchanged.py $(VENV)/tested $(PYTEST) --sample $(SEED) --durations 20

# What `make test SEED=...` leaves out: types, layers, and the other cases, also for those levels of
# processors whose kernels no installation makes.
test-rest: layers types
	$(BIN)/delegraph numba warmup --cpu all
	$(PYTEST) --rest $(SEED)

test-all:
	@$(MAKE) --no-print-directory test SEED=$(SEED)
	@$(MAKE) --no-print-directory test-rest SEED=$(SEED)

# mypy keeps what it knows of unchanged modules, so the first run takes longer.
BASE ?= main

check: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(BIN)/delegraph numba warmup
	$(BIN)/python -m pytest --quiet --numprocesses logical $$($(BIN)/python tests/changed_tests.py $(BASE))

# One environment for each engine; those that are there are used again. The conformance kit tries a
# sample; with FULL=1 it tries everything, for as long as that takes: the first check that needs models
# of all operators compiles them. `make test-engine-openvino` is for one.
test-engines: $(ENGINES:%=test-engine-%)

.PRECIOUS: .venv-%/installed
test-engine-%: .venv-%/installed
	@cd delegates/$* && $(abspath .venv-$*)/$(notdir $(BIN))/python -m pytest --quiet \
	  $(if $(FULL),--timeout 0,--delegate-quick)

.venv-%/installed: delegates/%/pyproject.toml
	@echo "Installing the engine of $* into .venv-$* ..."
	@$(PYTHON) -m venv .venv-$*
	@.venv-$*/$(notdir $(BIN))/python -m pip --disable-pip-version-check install --quiet \
	  --editable ".[testing]" --editable ./delegates/$* ai-edge-litert==2.3.0
	@touch $@

# One environment for each extra of what scales, with what its tests need beside: the dependency group
# of its name. `make test-scale-ray` is for one.
SCALE := beam ray serve serve-ray
SERVE_TESTS := tests/scale/test_serve.py tests/scale/test_serve_load.py tests/scale/serving
SCALE_TESTS_serve := $(SERVE_TESTS) tests/docs/test_deploy.py
SCALE_TESTS_serve-ray := $(SERVE_TESTS)

test-scale: $(SCALE:%=test-scale-%)

.PRECIOUS: .venv-%/installed-scale
test-scale-%: .venv-%/installed-scale
	@.venv-$*/$(notdir $(BIN))/python -m pytest --quiet $(or $(SCALE_TESTS_$*),tests/scale/test_$*.py)

.venv-%/installed-scale: pyproject.toml
	@echo "Installing the extra $* into .venv-$* ..."
	@$(PYTHON) -m venv .venv-$*
	@.venv-$*/$(notdir $(BIN))/python -m pip --disable-pip-version-check install --quiet \
	  --upgrade "pip>=25.1"
	@.venv-$*/$(notdir $(BIN))/python -m pip --disable-pip-version-check install --quiet \
	  --editable ".[$*,testing]" --editable ./delegates/numba_cpu --group test-$*
	@touch $@

conformance: $(VENV)/installed-test
	@$(BIN)/python tests/conformance/run.py
	@$(BIN)/python tests/conformance/run_ill_formed.py
	@$(BIN)/python -m pytest --quiet tests/micro/test_wheel.py

# `make fuzz TARGET="core numba_cpu" COPIES=300000` ends after so many copies of each, however long they
# take; GUIDED=1 lets coverage choose, by atheris; FUZZ="--first 1000" adds options, which `python tests/fuzz/run.py --help` lists. What is found
# is saved in fuzz-findings: docs/fuzzing.md.
MINUTES := $(if $(COPIES),100000,10)
TARGET :=
COPIES :=
GUIDED :=
FUZZ :=

fuzz: $(VENV)/installed-test
	@$(if $(GUIDED),$(PIP) install --quiet --group fuzz)
	@$(BIN)/python tests/fuzz/run.py --minutes $(MINUTES) --seed $(SEED) \
	  $(if $(GUIDED),--guided) $(addprefix --target ,$(strip $(TARGET))) $(addprefix --copies ,$(COPIES)) $(FUZZ)

# `make soak HOURS=0.2` takes twelve minutes; SOAK="--threads 5" adds options: docs/fuzzing.md.
HOURS := 1
SOAK :=

soak: $(VENV)/installed-test
	@$(BIN)/python tests/soak/run.py --hours $(HOURS) --seed $(SEED) $(SOAK)

# `make mutants MODULES="schema plugins.choice" SAMPLE=20` judges a fifth of the mutants of some modules;
# MUTANTS="--again" judges survivors again. Verdicts are kept in .mutants.
MODULES :=
SAMPLE := 100
MUTANTS :=

mutants: $(VENV)/installed-test
	@$(BIN)/python tests/mutation/run.py $(MODULES) --sample $(SAMPLE) $(MUTANTS)

# One environment for each release; those that are there are used again.
LITERT_VENV := .venv-litert

litert-matrix:
	@$(PYTHON) tests/native/litert/litert_matrix.py $(LITERT_VENV)

# Two TensorFlows: 2.18.1 is the last whose interpreter runs Flex operators; the current one converts
# models and executes operators. Existing ones are used instead by FLEX_ORACLE and FLEX_TENSORFLOW:
# Pythons that have them, the second with Delegraph and its flex delegate. TensorFlow 2.18.1 needs a
# Python up to 3.12 (PYTHON=python3.12).
FLEX_VENV := .venv-flex
FLEX_ORACLE ?= $(FLEX_VENV)/oracle/bin/python
FLEX_TENSORFLOW ?= $(FLEX_VENV)/tensorflow/bin/python
FLEX_SCRIPTS := delegates/flex/tests/oracle
FLEX_MODELS := $(FLEX_VENV)/models
FLEX_ENVIRONMENT := TF_CPP_MIN_LOG_LEVEL=3 TF_ENABLE_ONEDNN_OPTS=0 \
  PYTHONPATH=delegates/flex/tests:$$PYTHONPATH

flex-oracle: $(FLEX_ORACLE) $(FLEX_TENSORFLOW)
	@rm -rf $(FLEX_MODELS) && mkdir -p $(FLEX_MODELS)
	@echo "Converting models, which takes some minutes ..."
	@$(FLEX_ENVIRONMENT) $(FLEX_TENSORFLOW) $(FLEX_SCRIPTS)/convert.py $(FLEX_MODELS) \
	  2>$(FLEX_MODELS)/log.txt || { tail $(FLEX_MODELS)/log.txt >&2; exit 1; }
	@echo "Running them in TensorFlow 2.18.1's interpreter ..."
	@$(FLEX_ENVIRONMENT) $(FLEX_ORACLE) $(FLEX_SCRIPTS)/interpret.py $(FLEX_MODELS) \
	  2>$(FLEX_MODELS)/log.txt || { tail $(FLEX_MODELS)/log.txt >&2; exit 1; }
	@$(FLEX_ENVIRONMENT) $(FLEX_TENSORFLOW) $(FLEX_SCRIPTS)/agree.py $(FLEX_MODELS) $(FLEX_KEEP)

# What tests compare with where TensorFlow is not installed.
flex-record: $(FLEX_TENSORFLOW)
	@$(FLEX_ENVIRONMENT) $(FLEX_TENSORFLOW) $(FLEX_SCRIPTS)/record.py
	@$(MAKE) --no-print-directory flex-oracle FLEX_KEEP=--keep

$(FLEX_VENV)/oracle/bin/python:
	@echo "Installing TensorFlow 2.18.1 into $(FLEX_VENV)/oracle ..."
	@$(PYTHON) -m venv $(FLEX_VENV)/oracle
	@$@ -m pip --disable-pip-version-check install --quiet tensorflow-cpu==2.18.1 \
	  || { rm -rf $(FLEX_VENV)/oracle; exit 1; }

$(FLEX_VENV)/tensorflow/bin/python:
	@echo "Installing TensorFlow 2.21 and Delegraph into $(FLEX_VENV)/tensorflow ..."
	@$(PYTHON) -m venv $(FLEX_VENV)/tensorflow
	@$@ -m pip --disable-pip-version-check install --quiet tensorflow-cpu==2.21.* \
	  --editable . --editable ./delegates/flex || { rm -rf $(FLEX_VENV)/tensorflow; exit 1; }

# The wheel of TFLM's interpreter; TFLM_ORACLE names another Python that has it, with NumPy.
TFLM_VENV := .venv-tflm
TFLM_ORACLE ?= $(TFLM_VENV)/bin/python

tflm-oracle: $(VENV)/installed-test $(TFLM_ORACLE)
	@$(BIN)/python tests/micro/wheel/record.py $(TFLM_ORACLE) $(TFLM_KEEP)

# What tests compare with where the wheel is not installed.
tflm-record:
	@$(MAKE) --no-print-directory tflm-oracle TFLM_KEEP=--keep

$(TFLM_VENV)/bin/python:
	@echo "Installing tflite-micro into $(TFLM_VENV) ..."
	@$(PYTHON) -m venv $(TFLM_VENV)
	@$@ -m pip --disable-pip-version-check install --quiet tflite-micro \
	  || { rm -rf $(TFLM_VENV); exit 1; }

# `make test-aarch64 MODELS=folder` runs the models of a folder too; ONLY=model-neon_dotprod some steps; for
# all of them see docs/platforms.md. Those that passed are not run again: interrupt it and start it again.
# `rm -r .aarch64` begins anew.
AARCH64 := .aarch64
SMOKE :=

test-aarch64: $(VENV)/installed-test
	@$(BIN)/python tests/aarch64/run.py $(AARCH64) $(if $(SMOKE),--smoke) $(addprefix --models ,$(MODELS)) \
	  $(addprefix --only ,$(ONLY))

bench: $(VENV)/installed-test
	@$(BIN)/python tests/benchmarks/run.py $(ONLY) $(ARGS)

# Warnings are errors. Plugins are left out, so that the pages are the same everywhere.
docs: $(VENV)/installed-docs
	@$(BIN)/mypy docs/mkdocs_hooks.py docs/docstring_markup.py
	@NO_MKDOCS_2_WARNING=1 DELEGRAPH_PLUGINS= $(BIN)/mkdocs build --strict
	@$(BIN)/python -m pytest --quiet tests/docs/built_site.py
	@echo "To read it: $(BIN)/python -m http.server --directory site"

# Each wheel is built from its sdist, as a packager would build it. Those of numba_cpu compile kernels
# for all levels of processors, which takes some minutes; Linux builds them for two families.
FAMILIES := $(if $(filter Linux,$(shell uname -s)),x86_64 aarch64)

dist: export DELEGRAPH_CPU := all
dist: $(VENV)/installed-dist
	@rm -rf dist
	@for folder in $(dir $(PROJECTS) $(ENGINE_PROJECTS)); do \
	  echo "Building $$folder ..."; \
	  $(BIN)/python -m build --outdir dist $$folder >$(VENV)/build.log 2>&1 \
	    || { cat $(VENV)/build.log >&2; exit 1; }; done
	@for family in $(filter-out $(shell uname -m),$(FAMILIES)); do \
	  echo "Building the wheel of numba_cpu for $$family ..."; \
	  DELEGRAPH_NUMBA_CPU_MACHINE=$$family $(BIN)/python -m build --wheel --outdir dist \
	    delegates/numba_cpu >$(VENV)/build.log 2>&1 || { cat $(VENV)/build.log >&2; exit 1; }; done
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python -m pytest tests/distributions/built.py

lint: layers types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

layers: $(VENV)/installed-test
	$(BIN)/lint-imports --no-logo

types: $(VENV)/installed-test
	@if $(BIN)/python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))'; then \
	  $(MAKE) --no-print-directory types-of-all; \
	  else echo "mypy is left out: for this Python there is no NumPy with the types used here."; fi

types-of-all:
	$(BIN)/mypy
	$(BIN)/mypy docs/demo/demo.py docs/demo/demo_digits.py docs/demo/demo_run.py docs/demo/make_photo.py docs/demo/make_sines.py docs/demo/make_language_model.py docs/generate_operators.py docs/generate_json_schemas.py docs/generate_speed.py docs/speed_pictures.py docs/speed_results.py docs/json_examples.py \
	  docs/make_pictures.py docs/make_screenshots.py docs/run_notebooks.py
	$(BIN)/mypy tests/aarch64

clean:
	rm -rf $(VENV) $(FLEX_VENV) $(LITERT_VENV) $(TFLM_VENV) $(ENGINES:%=.venv-%) $(SCALE:%=.venv-%) .mypy_cache .pytest_cache .ruff_cache .hypothesis \
	  .mutants fuzz-findings dist site $(AARCH64)

# A stamp file records each step, so that it runs again only when a pyproject.toml changes.

$(VENV)/created:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "Delegraph needs Python 3.10 or newer, and there is no $(PYTHON) here." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "Delegraph needs Python 3.10 or newer; $(PYTHON) is: $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one, for example: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@echo "Creating the virtual environment $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "$(PYTHON) cannot create a virtual environment (see above)." >&2; \
	  echo "On Debian and Ubuntu this installs what is missing: apt install python3-venv" >&2; exit 1; }
	@$(PIP) install --quiet "pip>=25.1" # has --group, and looks for packages three times as fast as 23
	@touch $@

# Kernels are compiled while the other packages are installed: the two sets have nothing in common.
JOBS := $(MAKE) --silent --jobs 2

$(VENV)/installed: $(VENV)/created $(PROJECTS)
	@$(JOBS) $(VENV)/installed-kernels $(VENV)/installed-packages
	@$(PIP) install --quiet delegraph-numba-cpu # what it needs and the others do not
	@touch $@

$(VENV)/installed-kernels: $(VENV)/created $(COMPILED)pyproject.toml
	@echo "Compiling kernels for this processor, which takes about a minute ..."
	@$(PIP) install --quiet --no-deps --editable ./$(COMPILED)
	@touch $@

# They are built in $(VENV) itself, which takes less than an environment for each.
$(VENV)/installed-packages: $(VENV)/created $(PURE:%=%pyproject.toml)
	@echo "Installing Delegraph and its plugins into $(VENV) ..."
	@$(PIP) install --quiet "hatchling>=1.27" "hatch-fancy-pypi-readme>=24.1" editables
	@$(PIP) install --quiet --no-build-isolation $(PURE:%=--editable ./%)
	@touch $@

$(VENV)/installed-test: $(VENV)/created $(PROJECTS)
	@$(JOBS) $(VENV)/installed-kernels $(VENV)/installed-tools
	@$(MAKE) --silent $(VENV)/installed
	@touch $@

# Where a tool has no wheel for a Python, install_tools.py names it and installs the others.
$(VENV)/installed-tools: $(VENV)/installed-packages
	@echo "Installing the test tools into $(VENV) ..."
	@$(PIP) install --quiet --group test || $(BIN)/python tests/install_tools.py
	@touch $@

$(VENV)/installed-dist $(VENV)/installed-docs: $(VENV)/installed-test
	@$(PIP) install --quiet --group $(@:$(VENV)/installed-%=%)
	@touch $@

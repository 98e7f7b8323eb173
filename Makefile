# Everything needed on a fresh machine with Python 3.11+ and make. `make` lists the targets.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
INSTALLED_DEV := $(VENV)/installed-dev
CPU_TORCH := $(VENV)/cpu-torch
CPU_INDEX := https://download.pytorch.org/whl/cpu
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
COMPILE = $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
SCALE ?= paper
OPTIONS ?=
REPRODUCE = $(BIN)/python recipes/paper/reproduce.py scale=$(SCALE) $(OPTIONS)

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow check docs format wheel dist clean \
	reproduce reproduce-table1 reproduce-table2 reproduce-table3 reproduce-table4

help: ## Show this list
	@echo "nmt: neural machine translation with the Transformer. Targets:"
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  make \1\t/' | expand -t 25

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "nmt needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)

# On Linux, PyPI's torch brings gigabytes of CUDA; PyTorch's own index has torch for CPUs. A computer
# that cannot reach it takes PyPI's torch after a few seconds. The index lacks the other packages.
$(CPU_TORCH): | $(BIN)/python
	@if [ "$$(uname -s)" = Linux ] && [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; then \
		$(PIP) install --no-deps --no-compile -c constraints.txt --retries 0 --timeout 10 \
			--index-url $(CPU_INDEX) torch 2> /dev/null || \
			echo "$(CPU_INDEX) has no torch for this computer, or is out of reach: using PyPI's"; \
	fi
	@touch $@

# pip would compile the packages' modules on a single core.
$(INSTALLED): pyproject.toml constraints.txt | $(CPU_TORCH)
	$(PIP) install --no-compile -c constraints.txt -e .
	$(COMPILE)
	@touch $@

$(INSTALLED_DEV): pyproject.toml constraints.txt | $(CPU_TORCH)
	$(PIP) install --no-compile -c constraints.txt -e '.[dev]'
	$(COMPILE)
	@touch $(INSTALLED) $@

install: $(INSTALLED) ## Only install, into .venv; then run `. .venv/bin/activate`

demo: $(INSTALLED) ## Train a real English-German translator and score it on a test set (about 7 minutes on 2 AVX512 cores)
	$(BIN)/nmt demo

reproduce: $(INSTALLED_DEV) ## Reproduce the paper's Tables 1 to 4; SCALE=laptop: small versions, on a CPU
	$(REPRODUCE) all

reproduce-table1: $(INSTALLED_DEV) ## Table 1: the cost of each layer type
	$(REPRODUCE) table1

reproduce-table2: $(INSTALLED_DEV) ## Table 2: BLEU and training cost
	$(REPRODUCE) table2

reproduce-table3: $(INSTALLED_DEV) ## Table 3: model variations
	$(REPRODUCE) table3

reproduce-table4: $(INSTALLED_DEV) ## Table 4: constituency parsing; needs OPTIONS=treebank=FOLDER
	$(REPRODUCE) table4

# One single-threaded process per core, for two cores: with more threads than cores, threads would wait for each other.
test: $(INSTALLED_DEV) ## Run the tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal

test-slow: $(INSTALLED_DEV) ## Run the tests that take seconds to minutes each; OPTIONS=FILE: only the tests in a file
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m slow $(OPTIONS)

check: $(INSTALLED_DEV) ## Run everything that a change must pass besides the tests: formatter, linter, type checker, docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	MYPYPATH=recipes/paper $(BIN)/mypy recipes/paper
	$(MAKE) docs

docs: $(INSTALLED_DEV) ## Build the documentation into site/ and check its links
	$(PIP) install -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

format: $(INSTALLED_DEV) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

wheel: $(INSTALLED) ## Build the wheel and check that it works from another directory
	rm -rf dist build/wheel
	$(PIP) wheel --no-deps -w dist .
	$(PIP) install --no-deps --target build/wheel dist/*.whl
	cd / && PYTHONPATH="$(CURDIR)/build/wheel" "$(abspath $(BIN))/python" -P -c \
		'import nmt, pathlib; assert pathlib.Path(nmt.__file__).is_relative_to("$(CURDIR)/build/wheel"), nmt.__file__'
	cd / && PYTHONPATH="$(CURDIR)/build/wheel" "$(abspath $(BIN))/python" -P -m nmt train model=big --cfg > /dev/null
	@echo "dist/$$(ls dist) works from another directory, with its YAML groups inside"

dist: wheel ## Build the wheel and the source package of a release
	$(PIP) install build
	$(BIN)/python -m build --sdist --outdir dist .

clean: ## Remove the environment and build outputs; keep data/ and runs/
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache

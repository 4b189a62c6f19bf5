# Each target makes what it needs: a virtual environment in .venv, the packages, a Vulkan adapter.
#   make demo      classify handwritten digits on the GPU, and fine-tune 4-bit layers
#   make test      everything: style, types, every test
#   make check     style, types and the tests that need neither adapter nor torch (under two minutes)
#   make conformance  the operators on further software drivers (Debian 12): SwiftShader and Mesa 25
#   make bench     the numbers in bench/RESULTS.md
#   make fixtures  export tests/fixtures and the demo's program again
# TORCH_INDEX=https://download.pytorch.org/whl/cpu keeps CUDA's libraries out of .venv on Linux.

SHELL := bash
.DEFAULT_GOAL := help

# A name on the path may be a pyenv shim of a version that is not there: run it to know.
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3.10 python3; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$name && break; done)
TORCH_INDEX ?=
DRIVERS ?= swiftshader mesa25
TEST_FLAGS ?= -n auto --dist worksteal

venv := .venv
python := $(venv)/bin/python
pip := $(python) -m pip --disable-pip-version-check -q

.PHONY: help demo test conformance check lint bench fixtures adapter layers clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(venv)/.runtime adapter
	@$(venv)/bin/nybble demo

test: lint $(venv)/.export adapter layers
	$(python) -m pytest $(TEST_FLAGS)

check: lint
	$(python) -m pytest $(TEST_FLAGS) -m "not export and not device and not slow"

lint: $(venv)/.dev
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy

bench: $(venv)/.export adapter
	$(python) -m bench.run

# One driver a process: the Vulkan loader is told which by the environment.
conformance: $(venv)/.dev adapter
	@for driver in $(DRIVERS); do \
		selection=$$(tools/driver.sh $$driver .cache/drivers) && eval "$$selection" && \
		echo "conformance on $$driver" && \
		$(python) -m pytest $(TEST_FLAGS) tests/conformance tests/test_programs.py || exit 1; done

fixtures: $(venv)/.export
	$(python) tools/make_fixtures.py
	$(python) -m nybble.demo.train

# The tests of the Vulkan device use the validation layer where it is; without it they say so.
layers:
	@dpkg -s vulkan-validationlayers >/dev/null 2>&1 || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends vulkan-validationlayers; } >/dev/null 2>&1 || true

adapter: $(venv)/.runtime
	@tools/ensure_adapter.sh $(python)

$(venv)/bin/python:
	@test -n "$(PYTHON)" || { echo "nybble needs Python 3.10 or newer, and none is on the path: install one, or name it with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv $(venv) || { rm -rf $(venv); echo "$(PYTHON) cannot make a virtual environment: on Debian and Ubuntu, apt-get install python3-venv" >&2; exit 1; }

$(venv)/.runtime: pyproject.toml | $(venv)/bin/python
	$(pip) install -e .
	@touch $@

$(venv)/.dev: pyproject.toml | $(venv)/bin/python
	$(pip) install -e ".[dev]"
	@touch $@ $(venv)/.runtime

# torch first and by itself: an index for torch alone must not serve the other packages.
$(venv)/.export: $(venv)/.dev
	$(pip) install $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) "torch==2.13.0"
	$(pip) install -e ".[dev,export]"
	@touch $@ $(venv)/.dev $(venv)/.runtime

clean:
	rm -rf $(venv) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

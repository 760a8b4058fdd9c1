# Targets set up what they need in .venv the first time they are called. They need make, Python >= 3.11 and a package
# index; another Python than python3 is named by `make demo PYTHON=python3.12`.
PYTHON ?= python3
SEED ?= 0
BIN := .venv/bin
INSTALLED := .venv/.installed-test,lint
CHECK_PYTHON := import sys; sys.version_info < (3, 11) and sys.exit("nurf needs Python >= 3.11, but $(PYTHON) is \
	%s.%s: name another one by PYTHON=..." % sys.version_info[:2])

.PHONY: help demo test test-hostile test-scale dist test-dist lint bench reproduce clean
.NOTPARALLEL: # all targets share .venv

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 19

demo: .venv/.installed-plot ## fit the borehole function in several ways, print a table, draw pictures into demo/
	$(BIN)/python examples/demo.py

test: $(INSTALLED) ## run the tests
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist loadfile

test-hostile: $(INSTALLED) ## run all hostile cases; SEED=1 generates others
	$(BIN)/python -m pytest tests/test_hostile.py tests/test_hostile_files.py --hostile --hostile-seed $(SEED) --numprocesses 2

test-scale: $(INSTALLED) ## run the tests with a million rows, little memory, and clusters whose workers die
	$(BIN)/python -m pytest tests/test_large_data.py --scale

dist: .venv/.installed-dist ## build the source distribution and the wheel into dist/
	rm -rf dist
	$(BIN)/python -m build

test-dist: $(INSTALLED) dist ## install the wheel into empty environments, without and with all extras, and use it
	$(BIN)/python -m pytest tests/test_dist.py --wheel dist/*.whl

lint: $(INSTALLED) ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(INSTALLED) ## compare the speed with that of the bare NumPy calls
	$(BIN)/python benchmarks/bench.py

reproduce: $(INSTALLED) ## draw the figures of the paper from a few trials, into build/
	$(BIN)/python -m reproduction --quick --jobs 2

clean: ## remove everything that the targets above made
	rm -rf .venv .venv-lowest demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The extras after the dash, installed: installed anew when pyproject.toml changes.
.venv/.installed-%: pyproject.toml
	@$(PYTHON) -c '$(CHECK_PYTHON)'
	@echo "Setting up .venv: this takes a minute or two."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

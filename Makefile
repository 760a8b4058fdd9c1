# The first call of any target creates .venv and installs what it needs; later calls reuse it.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: demo reproduce test lint bench clean

demo: $(INSTALLED)
	$(BIN)/python examples/demo.py

reproduce: $(INSTALLED)
	$(BIN)/nurf reproduce --quick --jobs 2 --out reproduction

test: $(INSTALLED)
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist loadfile

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(INSTALLED)
	$(BIN)/python benchmarks/bench.py

clean:
	rm -rf .venv demo reproduction .pytest_cache .mypy_cache .ruff_cache

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,cli]'
	touch $@

# Targets set up what they need in .venv the first time they are called. They need make, Python >= 3.11 and a package
# index; another Python than python3 is named by `make demo PYTHON=python3.12`.
PYTHON ?= python3
SEED ?= 0
BIN := .venv/bin
INSTALLED := .venv/.installed-test,lint
SPHINX := $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --doctree-dir build/doctrees
CHECK_PYTHON := import sys; sys.version_info < (3, 11) and sys.exit("nurf needs Python >= 3.11, but $(PYTHON) is \
	%s.%s: name another one by PYTHON=..." % sys.version_info[:2])

.PHONY: help demo test test-hostile test-scale dist test-dist lint docs docs-links bench bench-peers bench-anytime reproduce clean
.NOTPARALLEL: # all targets share .venv

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 19

demo: .venv/.installed-cli ## fit the borehole function in several ways, print tables, draw pictures and an interactive report into demo/
	$(BIN)/python examples/demo.py

test: $(INSTALLED) ## run the tests
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal

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

docs: export OMP_NUM_THREADS := 1
docs: .venv/.installed-docs ## run the examples of the documentation and build it into build/docs; warnings are errors
	$(BIN)/python -m pytest README.md docs
	$(SPHINX) -b html docs build/docs

docs-links: .venv/.installed-docs ## check the external links of the documentation, which needs the internet
	$(SPHINX) -b linkcheck -D sphinx_gallery_conf.plot_gallery=0 docs build/links

bench: $(INSTALLED) ## compare the speed with that of bare NumPy calls; BENCH=--quick takes a minute, not ten
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/bench.py $(BENCH)

bench-peers: .venv-peers/.installed ## draw the error of ours and of other libraries against seconds; BENCH=--quick for less
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-peers/bin/python benchmarks/bench_peers.py $(BENCH)

bench-anytime: .venv-peers/.installed ## compare what Surrogate makes of 0.03 to 20 seconds with a Gaussian process of scikit-learn
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-peers/bin/python benchmarks/anytime.py $(BENCH)

reproduce: $(INSTALLED) ## draw the figures of the paper from a few trials, into build/
	$(BIN)/python -m reproduction --quick --jobs 2

clean: ## remove everything that the targets above made
	rm -rf .venv .venv-lowest .venv-peers demo build dist docs/gallery docs/reference
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis

# What others have made, in an environment of its own. One that cannot be installed is left out of the comparison.
.venv-peers/.installed: pyproject.toml benchmarks/peers.txt
	@$(PYTHON) -c '$(CHECK_PYTHON)'
	@echo "Setting up .venv-peers: this takes some minutes."
	@$(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[plot]'
	@while read peer; do .venv-peers/bin/python -m pip install --quiet --disable-pip-version-check $$peer \
		|| echo "$$peer cannot be installed and is left out."; done < benchmarks/peers.txt
	@touch $@

# The extras after the dash, installed: installed anew when pyproject.toml changes.
.venv/.installed-%: pyproject.toml
	@$(PYTHON) -c '$(CHECK_PYTHON)'
	@echo "Setting up .venv: this takes a minute or two."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

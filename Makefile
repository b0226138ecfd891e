PYTHON ?= python3.11
# The versions to install; empty for the newest that pyproject.toml allows.
export CONSTRAINTS ?= constraints.txt
# Hundreds of files are imported, again and again: their byte code is kept, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=
BIN := .venv/bin
# Stamps of what is installed: what the demo needs, and beside it the extras after the last dash.
READY := .venv/.ready
DEV := .venv/.ready-dev

.PHONY: help demo test slow figures lint format docs bench results clean

## Show what can be made.
help:
	@awk '/^## / { text = substr($$0, 4) } /^[a-z-]+:/ && text { printf "make %-12s %s\n", substr($$1, 1, length($$1) - 1), text; text = "" }' Makefile

## Compare three methods on drawn cats and dogs; no network, account or GPU needed.
demo: $(READY)
	$(BIN)/headstart demo $(ARGS)

## Run the tests; `make test ARGS=tests/metrics` runs a part of them.
test: $(DEV)
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses=auto --dist=worksteal $(ARGS)

## Run the tests that take several seconds or more each.
slow: $(DEV)
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses=auto -m slow $(ARGS)

## Store the figures again that the tests compare; look at each that changed.
figures: $(DEV)
	mkdir -p tests/output/stored_figures
	STORE_FIGURES=1 $(BIN)/pytest --quiet -m slow tests/output/test_stored_figures.py

## Check style and types.
lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

## Bring the code into shape.
format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

## Build the site into build/site; open build/site/index.html, no server needed.
docs: $(DEV)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict $(ARGS)

## Measure speed and the coverage of intervals, and write docs/results/speed.md and coverage.md; needs ../shared.
bench: $(DEV)
	$(BIN)/python -m headstart.benchmarks speed $(ARGS)
	$(BIN)/python -m headstart.benchmarks coverage $(ARGS)

## Run the local suite, and write docs/results from it; needs ../shared, takes an hour.
results: $(DEV)
	$(BIN)/headstart sweep benchmarks/local/sweep/benchmark.yaml --workers 2
	$(BIN)/python -m headstart.benchmarks results

## Remove the environment and what is built.
clean:
	rm -rf .venv build *.egg-info

# Made anew whenever what is to be installed changes.
$(READY): pyproject.toml $(CONSTRAINTS) .ci/install.py
	@echo "Installing PyTorch and what the demos need into .venv: 3 GB to download, 6 GB on disk, about a minute"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python .ci/install.py --editable '.[report,sklearn]'
	@mkdir -p .venv/types && ln -sfn ../.. .venv/types/headstart
	@touch $@

.venv/.ready-%: $(READY)
	@echo "Installing the extra $*: up to 300 MB to download, some seconds"
	@$(BIN)/python .ci/install.py 'headstart[$*]'
	@touch $@

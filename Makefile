PYTHON ?= python3.11
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint clean

## Compare three methods on drawn cats and dogs; no network, account or GPU needed.
demo: $(READY)
	$(BIN)/python train.py --config configs/demo.yaml $(ARGS)

## Run the tests; `make test ARGS="-m slow"` runs the slow ones.
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=auto $(ARGS)

## Check style and types.
lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Made anew whenever what is to be installed changes.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf .venv build *.egg-info

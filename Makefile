PYTHON ?= python3.11
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo demo-cka demo-sources test lint clean

## Compare three methods on drawn cats and dogs; no network, account or GPU needed.
demo: $(READY)
	$(BIN)/python train.py --config configs/demo.yaml $(ARGS)

## Compare the representations of the embedded networks; no network, account or GPU needed.
demo-cka: $(READY)
	$(BIN)/python -m scripts.write_photos runs/demo-cka/drawings/drawn_pets
	$(BIN)/python -m scripts.write_catalog runs/demo-cka/drawings/drawn_pets --output=runs/demo-cka/stimuli.jsonl
	HACKATHON_DATASET_ROOT=runs/demo-cka/drawings $(BIN)/python evaluate.py cka --config=configs/evaluation/demo_cka.yaml $(ARGS)

## Score the embedded networks as sources, then targets for one of them; no network, account or GPU needed.
demo-sources: $(READY)
	$(BIN)/python evaluate.py transferability --config=configs/evaluation/demo_sources.yaml
	$(BIN)/python evaluate.py target-selection --config=configs/evaluation/demo_targets.yaml $(ARGS)

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

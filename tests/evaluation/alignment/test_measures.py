"""Every measure of the catalogue through the commands: its files, its numbers, and what only the default may do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES, mean_over_pairs
from headstart.tests.material.arena import Arena, make_entry, read_rows

# Narrow layers, since some measures need more stimuli than dimensions.
ENTRIES = [
    make_entry(f"mobilenet_v2_{name}", layer, "pool", 8, model_parameters={"name": "mobilenet_v2", "width_mult": 0.25})
    for name, layer in {"first": "features.1", "second": "features.2", "third": "features.3"}.items()
]
MODELS = [entry["model_name"] for entry in ENTRIES]


@pytest.fixture(autouse=True)
def narrow_layers(arena: Arena) -> None:
    arena.write("registry.json", {"contract_version": "1.0", "models": ENTRIES})


def compare(arena: Arena, measure: str, *options: str) -> Path:
    models = f"--models=[{', '.join(MODELS)}]"
    return arena.evaluate("cka", models, f"--measure={measure}", "--logger=false", *options)


def test_results_are_what_the_measures_give_and_stand_side_by_side(
    arena: Arena, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier: dict[str, bytes] = {}
    for measure, described in SIMILARITY_MEASURES.items():
        folder = compare(arena, measure)
        is_default = measure == DEFAULT_MEASURE
        prefix, result = ("", "cka.json") if is_default else (f"{measure}_", f"{measure}.json")
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert set(files) - set(earlier) == {result, f"{prefix}heatmap.png"}
        assert earlier.items() <= files.items()
        earlier = files

        document: dict[str, Any] = json.loads(files[result])
        assert document.get("measure", DEFAULT_MEASURE) == measure
        expected = described.pairwise(read_rows(arena.registry, arena.catalog, MODELS).values())
        mean = "mean_cka" if is_default else "mean"
        for estimate, matrix in zip(("biased", "debiased"), expected, strict=True):
            if matrix is None:
                assert document["pairwise"][estimate] is document[f"{mean}_{estimate}"] is None
            else:
                np.testing.assert_array_equal(document["pairwise"][estimate], matrix)
                assert document[f"{mean}_{estimate}"] == mean_over_pairs(matrix)
        printed = " ".join(capsys.readouterr().out.split())
        assert f"mean pairwise {described.title} {document[f'{mean}_biased']:.6f}" in printed
        # A measure with one estimate does not name it.
        assert ("biased" in printed) == described.has_debiased


def test_a_measure_that_is_undefined_names_the_model(arena: Arena, refused: Callable[..., str]) -> None:
    arena.write("catalog.jsonl", "".join(json.dumps(stimulus) + "\n" for stimulus in arena.stimuli[:8]))
    for measure, reason in (("mutual_knn", "each of which needs 10 others"), ("pwcca", "directions")):
        text = refused(lambda measure=measure: compare(arena, measure))
        assert text.startswith("error: model 'mobilenet_v2_first': ")
        assert reason in text
        assert not (arena.folder / "out").exists()

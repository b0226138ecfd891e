"""Every measure of the catalogue through the commands: its files, its numbers, and what only the default may do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES, mean_over_pairs
from headstart.tests.material.arena import Arena, make_entry

# Narrow layers, since some measures need more stimuli than dimensions.
ENTRIES = [
    make_entry(f"mobilenet_v2_{name}", layer, "pool", 8, model_parameters={"width_mult": 0.25})
    for name, layer in {"first": "features.1", "second": "features.2", "third": "features.3"}.items()
]
MODELS = [entry["model_name"] for entry in ENTRIES]
OTHERS = [name for name in SIMILARITY_MEASURES if name != DEFAULT_MEASURE]


@pytest.fixture(autouse=True)
def narrow_layers(arena: Arena) -> None:
    arena.write("registry.json", {"contract_version": "1.0", "models": ENTRIES})


def compare(arena: Arena, measure: str, *options: str) -> Path:
    models = f"--models=[{', '.join(MODELS)}]"
    return arena.evaluate("cka", models, f"--measure={measure}", "--save_embeddings=true", "--logger=false", *options)


@pytest.mark.parametrize("measure", SIMILARITY_MEASURES)
def test_result_is_what_the_measure_gives(arena: Arena, measure: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = compare(arena, measure)
    prefix, result = ("", "cka.json") if measure == DEFAULT_MEASURE else (f"{measure}_", f"{measure}.json")
    names = {result, f"{prefix}heatmap.png", f"{prefix}embeddings.npz"}
    assert {path.name for path in folder.iterdir()} == names
    document: dict[str, Any] = json.loads((folder / result).read_text())
    assert document.get("measure", DEFAULT_MEASURE) == measure
    with np.load(folder / f"{prefix}embeddings.npz") as rows:
        expected = SIMILARITY_MEASURES[measure].pairwise([rows[name] for name in MODELS])
    mean = "mean_cka" if measure == DEFAULT_MEASURE else "mean"
    for estimate, matrix in zip(("biased", "debiased"), expected, strict=True):
        if matrix is None:
            assert document["pairwise"][estimate] is document[f"{mean}_{estimate}"] is None
        else:
            np.testing.assert_array_equal(document["pairwise"][estimate], matrix)
            assert document[f"{mean}_{estimate}"] == mean_over_pairs(matrix)
    printed = " ".join(capsys.readouterr().out.split())
    assert f"mean pairwise {SIMILARITY_MEASURES[measure].title} {document[f'{mean}_biased']:.6f}" in printed
    # A measure with one estimate does not name it.
    assert ("biased" in printed) == SIMILARITY_MEASURES[measure].has_debiased


@pytest.mark.parametrize("measure", ["rbf_cka", "mutual_knn"])
def test_measures_stand_side_by_side(arena: Arena, measure: str) -> None:
    folder = compare(arena, DEFAULT_MEASURE)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    compare(arena, measure)
    assert {name: (folder / name).read_bytes() for name in before} == before
    assert len(list(folder.iterdir())) == 2 * len(before)


@pytest.mark.usefixtures("no_forward_pass")
@pytest.mark.parametrize("measure", OTHERS)
def test_submissions_are_scored_by_the_default_alone(arena: Arena, refused: Callable[..., str], measure: str) -> None:
    text = refused(lambda: arena.score(arena.red([0, 1, 2]), f"--measure={measure}"))
    assert text.startswith(f"error: measure: {measure} is given, but the contract scores by {DEFAULT_MEASURE}")
    assert not (arena.folder / "out").exists()


# Subsets are searched by one function for all measures: one with a matrix of products, and one without.
@pytest.mark.parametrize("measure", ["rbf_cka", "procrustes"])
def test_models_that_agree_most_by_another_measure(arena: Arena, measure: str) -> None:
    folder = arena.evaluate("cka-search", "--team=blue", "--size=2", f"--measure={measure}")
    search = json.loads((folder / "search.json").read_text())
    compare(arena, measure, f"--output={arena.folder / 'all'}")
    document = json.loads((arena.folder / "all" / f"{measure}.json").read_text())
    matrix = np.array(document["pairwise"]["biased"]) - np.eye(len(MODELS))
    assert search["measure"] == measure
    assert search["score"] == pytest.approx(matrix.max())
    chosen = json.loads((folder / "submission.json").read_text())["models"]
    first, second = (MODELS.index(name) for name in chosen)
    assert matrix[first, second] == matrix.max()


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["rbf_cka", "procrustes", "mutual_knn"])
def test_stimuli_that_set_models_apart_by_another_measure(arena: Arena, measure: str) -> None:
    folder = arena.evaluate("cka-search", "--team=red", "--size=17", "--steps=20", f"--measure={measure}")
    search = json.loads((folder / "search.json").read_text())
    chosen = json.loads((folder / "submission.json").read_text())["differentiating_images"]
    indices = [arena.stimuli.index(stimulus) for stimulus in chosen]
    compare(arena, measure, f"--output={arena.folder / 'all'}")
    with np.load(arena.folder / "all" / f"{measure}_embeddings.npz") as rows:
        matrix, _ = SIMILARITY_MEASURES[measure].pairwise([rows[name][indices] for name in MODELS])
    assert search["measure"] == measure
    assert search["score"] == pytest.approx(1 - mean_over_pairs(matrix), abs=1e-9)
    assert search["score"] >= search["random"]["highest"] - 1e-9
    # The submission itself is like any other: the contract scores it, by its own measure.
    assert arena.score(folder / "submission.json", output="scored")["n_stimuli"] == 17


@pytest.mark.parametrize(
    ("measure", "reason"), [("mutual_knn", "each of which needs 10 others"), ("pwcca", "directions")]
)
def test_a_measure_that_is_undefined_names_the_model(
    arena: Arena, refused: Callable[..., str], measure: str, reason: str
) -> None:
    arena.write("catalog.jsonl", "".join(json.dumps(stimulus) + "\n" for stimulus in arena.stimuli[:8]))
    text = refused(lambda: compare(arena, measure))
    assert text.startswith("error: model 'mobilenet_v2_first': ")
    assert reason in text
    assert not (arena.folder / "out").exists()

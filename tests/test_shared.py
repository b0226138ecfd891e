"""End-to-end tests on real photos and real weights, where they lie beside the checkout."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart import evaluate, train
from headstart.datamodules.row_computation import RowComputer
from headstart.tests.material.arena import read_rows
from headstart.tests.material.root import ROOT, SHARED, require_shared

PHOTOS = require_shared("data/cats_and_dogs")
WEIGHTS = require_shared("weights/mobilenet_v2_imagenet.safetensors")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def run(config: str, folder: Path, cache: Path, *options: str) -> dict[str, Any]:
    paths = [f"--data.photos.root={PHOTOS}", f"--data.backbone.weights={WEIGHTS}", f"--data.cache_dir={cache}"]
    folders = [f"--trainer.default_root_dir={folder}", "--trainer.logger=false"]
    train.main(["--config", str(ROOT / "configs" / config), *paths, *folders, *options])
    results: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return results


@pytest.mark.slow
def test_medians_on_real_photos(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A quarter of the photos' size in a quarter of the time.
    options = ("--data.orderings=20", "--data.backbone.preprocessing={resize: 128, crop: 112}")
    results = run("cats_and_dogs.yaml", tmp_path / "first", cache, *options)
    medians = {name: scores["median"] for name, scores in results["methods"].items()}
    assert results["complete"]
    assert all(scores["reached"] == 20 for scores in results["methods"].values())
    assert 18 <= medians["baseline"] <= 36
    for name in ("nearest_class_mean", "streaming_lda", "recursive_least_squares", "logistic_regression"):
        assert 11 <= medians[name] <= 20, name
    assert medians["semantic_class_mean"] <= 12
    for name in ("nearest_class_mean", "semantic_class_mean"):
        assert results["comparisons"][name]["ci95"][0] > 10, name

    monkeypatch.setattr(RowComputer, "compute", lambda *_: pytest.fail("a row is computed again"))
    again = run("cats_and_dogs.yaml", tmp_path / "again", cache, *options)
    assert again["methods"] == results["methods"]


@pytest.mark.slow
def test_fine_tuning_on_real_photos(tmp_path: Path, cache: Path) -> None:
    options = ["--model.methods={probe: headstart.modules.LinearProbeThenFineTune}", "--data.orderings=1"]
    results = run("fine_tuning.yaml", tmp_path / "run", cache, *options)
    assert results["complete"]
    assert results["protocol"]["inputs"] == "photos"
    scores = results["methods"]
    assert scores["baseline"]["reached"] == scores["probe"]["reached"] == 1
    # A plain loop over the whole network, evaluated after every batch, takes 68 and 52.
    assert 48 <= scores["baseline"]["median"] <= 60
    assert 60 <= scores["probe"]["median"] <= 80


def write_alignment_documents(folder: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Write a registry of six models and a catalog of 60 photos; give the options and the stimuli."""
    preprocess = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "resize": 256, "crop": 224}
    layers: dict[str, tuple[str, str | None, str, str, int]] = {
        "mobilenet_v2_imagenet": ("torchvision", "imagenet", "classifier", "flatten", 1280),
        "mobilenet_v2_birds": ("torchvision", "inat_birds", "features", "pool", 1280),
        "mobilenet_v2_insects": ("torchvision", "inat_insects", "penultimate", "flatten", 1280),
        "resnet50": ("torchvision", None, "fc", "flatten", 2048),
        "vit_tiny_patch16_224": ("timm", None, "norm", "cls", 192),
        "timm_resnet18": ("timm", None, "layer4", "pool", 512),
    }
    registry = [
        {
            "model_name": name,
            "source": source,
            "weights": weights and str(SHARED / "weights" / f"mobilenet_v2_{weights}.safetensors"),
            "layer": layer,
            "embedding": embedding,
            "input_size": [224, 224],
            "preprocess": preprocess,
            "output_dim": width,
        }
        for name, (source, weights, layer, embedding, width) in layers.items()
    ]
    (folder / "registry.json").write_text(json.dumps(registry))
    photos = sorted((PHOTOS / "validation").rglob("*.jpg"))[::16][:60]
    stimuli = [
        {"dataset_name": "cats_and_dogs", "image_identifier": photo.relative_to(PHOTOS).as_posix()} for photo in photos
    ]
    (folder / "catalog.jsonl").write_text("".join(json.dumps(stimulus) + "\n" for stimulus in stimuli))
    options = [f"--registry={folder / 'registry.json'}", f"--catalog={folder / 'catalog.jsonl'}", "--logger=false"]
    return options, stimuli


def mean_cka_by_hand(folder: Path, models: list[str] | None = None, count: int = 0) -> float:
    embeddings = read_rows(folder / "registry.json", folder / "catalog.jsonl", models or (), range(count))
    centred = [rows.astype(np.float64) - rows.astype(np.float64).mean(0) for rows in embeddings.values()]
    values = [
        np.linalg.norm(x.T @ y) ** 2 / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))
        for x, y in combinations(centred, 2)
    ]
    return float(np.mean(values))


@pytest.mark.slow
def test_submissions_on_real_photos(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HACKATHON_DATASET_ROOT", str(PHOTOS.parent))
    monkeypatch.setenv("HEADSTART_CACHE", str(cache))
    options, stimuli = write_alignment_documents(tmp_path)
    submissions: dict[str, dict[str, Any]] = {
        "red": {"differentiating_images": stimuli[:12]},
        "blue": {"models": ["mobilenet_v2_imagenet", "mobilenet_v2_birds", "mobilenet_v2_insects"]},
    }
    scores = {}
    for team, submission in submissions.items():
        path, folder = tmp_path / f"{team}.json", tmp_path / team
        path.write_text(json.dumps(submission))
        evaluate.main(["cka", f"--team={team}", f"--submission={path}", f"--output={folder}", *options])
        scores[team] = json.loads((folder / "score.json").read_text())
    assert scores["red"]["score"] == pytest.approx(1 - mean_cka_by_hand(tmp_path, count=12), abs=1e-9)
    assert scores["blue"]["score"] == pytest.approx(mean_cka_by_hand(tmp_path, submissions["blue"]["models"]), abs=1e-9)
    assert (scores["red"]["n_models"], scores["red"]["n_stimuli"]) == (6, 12)
    assert (scores["blue"]["n_models"], scores["blue"]["n_stimuli"]) == (3, 60)
    # The three networks were trained on different species; they agree far more than noise of that width would.
    assert 0.2 < scores["blue"]["mean_cka_debiased"] < scores["blue"]["mean_cka_biased"] < 0.9
    assert scores["blue"]["timings"]["rows_computed"] == 3 * 48

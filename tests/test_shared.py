"""End-to-end tests on real photos and real weights, where they lie beside the checkout."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import train
from datamodules.extraction import PixelRows

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("HEADSTART_SHARED", ROOT.parent / "shared"))
PHOTOS = SHARED / "data" / "cats_and_dogs"
WEIGHTS = SHARED / "weights" / "mobilenet_v2_imagenet.safetensors"

pytestmark = pytest.mark.skipif(
    not (PHOTOS.is_dir() and WEIGHTS.is_file()),
    reason="needs the photos and weights of HEADSTART_SHARED, by default ../shared",
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def run(config: str, folder: Path, cache: Path, *options: str) -> dict[str, Any]:
    paths = [f"--data.photos.root={PHOTOS}", f"--data.backbone.weights={WEIGHTS}", f"--data.cache_dir={cache}"]
    folders = [f"--trainer.default_root_dir={folder}", "--trainer.logger=false"]
    train.main(["--config", str(ROOT / "configs" / config), *paths, *folders, *options])
    results: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return results


def test_medians_on_real_photos(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = run("cats_and_dogs.yaml", tmp_path / "first", cache, "--data.orderings=20")
    medians = {name: scores["median"] for name, scores in results["methods"].items()}
    assert results["complete"]
    assert all(scores["reached"] == 20 for scores in results["methods"].values())
    assert 18 <= medians["baseline"] <= 36
    for name in ("nearest_class_mean", "streaming_lda", "recursive_least_squares", "logistic_regression"):
        assert 11 <= medians[name] <= 20, name
    assert medians["semantic_class_mean"] <= 12
    for name in ("nearest_class_mean", "semantic_class_mean"):
        assert results["comparisons"][name]["ci95"][0] > 10, name

    def refuse(self: PixelRows) -> Iterator[Any]:
        raise AssertionError(self.title)

    monkeypatch.setattr(PixelRows, "__iter__", refuse)
    again = run("cats_and_dogs.yaml", tmp_path / "again", cache, "--data.orderings=20")
    assert again["methods"] == results["methods"]


@pytest.mark.slow
def test_fine_tuning_on_real_photos(tmp_path: Path, cache: Path) -> None:
    results = run("fine_tuning.yaml", tmp_path / "run", cache)
    assert results["complete"]
    assert results["protocol"]["inputs"] == "photos"
    scores = results["methods"]
    assert scores["baseline"]["reached"] == scores["linear_probe_then_fine_tune"]["reached"] == 1
    assert scores["linear_probe_then_fine_tune"]["median"] < scores["baseline"]["median"]

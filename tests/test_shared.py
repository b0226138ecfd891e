"""End-to-end tests on real photos and real weights, where they lie beside the checkout."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from headstart import train
from headstart.datamodules.row_computation import RowComputer

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

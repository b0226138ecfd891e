"""Transferability of real weights to real photos, where they lie beside the checkout."""

import json
import os
from pathlib import Path

import pytest

from headstart import evaluate
from headstart.tests.material.root import ROOT, require_checkout

SHARED = Path(os.environ.get("HEADSTART_SHARED", ROOT.parent / "shared"))
PHOTOS = SHARED / "data" / "cats_and_dogs"
SOURCES = ROOT / "benchmarks" / "mobilenet_v2_sources.json"
# Smaller photos than the weights were trained on take a tenth of the time.
SIDE = 64

pytestmark = pytest.mark.skipif(
    not (PHOTOS.is_dir() and (SHARED / "weights").is_dir()),
    reason="needs the photos and weights of HEADSTART_SHARED, by default ../shared",
)


@pytest.mark.slow
def test_imagenet_is_the_best_source_for_cats_and_dogs(tmp_path: Path) -> None:
    require_checkout()
    # All 2,000 training photos: with fewer than there are features, 1,280, the H-score of any source is 1.
    document = json.loads(SOURCES.read_text())
    for entry in document["models"]:
        entry["weights"] = str(SHARED / "weights" / Path(entry["weights"]).name)
        entry["input_size"] = [SIDE, SIDE]
        entry["preprocess"] |= {"resize": SIDE * 8 // 7, "crop": SIDE}
    registry = tmp_path / "registry.json"
    registry.write_text(json.dumps(document))
    options = ["--targets.pets=CatsAndDogs", f"--targets.pets.root={PHOTOS}", "--logger=false"]
    evaluate.main(["transferability", *options, f"--registry={registry}", f"--output={tmp_path / 'out'}"])
    document = json.loads((tmp_path / "out" / "transferability.json").read_text())
    assert document["targets"]["pets"]["photos"] == 2000
    of_imagenet, *others = document["scores"]["pets"].values()
    metrics = [metric for metric in document["metrics"] if metric != "num_classes"]
    assert len(metrics) == 11
    assert [name for name in metrics if of_imagenet[name]["score"] <= max(its[name]["score"] for its in others)] == []

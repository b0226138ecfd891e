"""Sources that classify pixels through the command line: trained, fine-tuned, tabulated and scored."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headstart import evaluate, train
from headstart.contract.documents import read_registry
from headstart.datamodules import DrawnScenes
from headstart.modules.networks.build import build
from headstart.modules.networks.normalization import Normalization
from headstart.modules.networks.pixel_classifier import PixelClassifier
from headstart.modules.photo_training import PhotoTraining
from headstart.tests.material.training import CONFIGS, error_line, predict_one_class, refuse, run

SCENES = {"subjects": ["fish", "car"], "train_size": 18, "validation_size": 5, "size": 32, "name": "small"}
NETWORK = "{name: mobilenet_v2, weights: random, model_args: {width_mult: 0.25}, preprocessing: {resize: 32, crop: 32}}"
FEW = [
    f"--data.photos={json.dumps({'class_path': 'headstart.datamodules.DrawnScenes', 'init_args': SCENES})}",
    *("--data.num_workers=0", "--data.batch_size=5", "--trainer.max_epochs=2"),
    *("--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false"),
]
SOURCE = [f"--config={CONFIGS / 'segmentation_source.yaml'}", *FEW, f"--data.backbone={NETWORK}"]
Train = Callable[..., dict[str, Any]]


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return tmp_path / "pool.json"


@pytest.fixture
def source(tmp_path: Path, pool: Path) -> dict[str, Any]:
    """Train a source, which is an entry of the pool."""
    return run(tmp_path / "source", *SOURCE, f"--results.registry={pool}")


@pytest.fixture
def tune(pool: Path) -> Train:
    options = [f"--config={CONFIGS / 'segmentation_target.yaml'}", *FEW]
    backbone = [f"--data.backbone.registry={pool}", "--data.backbone.name=source"]
    return lambda folder, *more: run(folder, *options, *backbone, f"--results.ledger={folder.parent / 'ledger'}", *more)


def brute_force_mean_iou(network: torch.nn.Module, normalize: torch.nn.Module, classes: int) -> float:
    """Count pixel by pixel, over all validation scenes."""
    photos = DrawnScenes(**SCENES).validation()  # type: ignore[arg-type]
    assert photos.maps is not None
    both, either = np.zeros((2, classes))
    for index in range(len(photos)):
        picture = torch.from_numpy(np.array(photos.read(index))).permute(2, 0, 1)[None]
        with torch.inference_mode():
            logits = network(normalize(picture)).permute(0, 3, 1, 2)
            predicted = torch.nn.functional.interpolate(logits, (32, 32), mode="bilinear").argmax(1)[0].numpy()
        labels = np.asarray(photos.maps.read(index))[..., 0]
        for label in range(classes):
            both[label] += ((predicted == label) & (labels == label)).sum()
            either[label] += ((predicted == label) | (labels == label)).sum()
    return float((both[either > 0] / either[either > 0]).mean())


def test_the_source_of_the_registry_has_the_reported_mean_iou(source: dict[str, Any], pool: Path) -> None:
    known = read_registry(pool)
    entry = known.entries["source"]
    assert (entry.layer, entry.embedding, entry.model_parameters["num_classes"]) == ("pixels", "pool", 3)
    network, preprocessing = build(known.networks(["source"], seed=0)["source"])
    assert isinstance(network, PixelClassifier)
    assert source["classes"] == ["background", "fish", "car"]
    assert (source["measure"], source["validation_size"]) == ("mean IoU", 5)
    # Weights are kept in half precision.
    assert source["accuracy"] == pytest.approx(brute_force_mean_iou(network, Normalization(preprocessing), 3), abs=0.01)
    assert entry.notes.startswith(f"Trained by Headstart on small, mean IoU {source['accuracy']:.4f}.")


@pytest.mark.slow
def test_a_mean_iou_that_is_known_is_not_measured_again(
    source: dict[str, Any], tune: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tune(tmp_path / "runs" / "first")
    assert 0 < first["accuracy"] < 1
    assert first["measure"] == "mean IoU"
    monkeypatch.setattr(PhotoTraining, "training_step", refuse)
    assert tune(tmp_path / "runs" / "second")["accuracy"] == first["accuracy"]
    evaluate.main(["performances", str(tmp_path / "runs" / "second"), f"--output={tmp_path / 'table.csv'}"])
    with (tmp_path / "table.csv").open() as file:
        [row] = csv.DictReader(file)
    assert (row["source"], row["target"], float(row["performance"])) == ("source", "small", first["accuracy"])


@pytest.mark.slow
def test_the_head_alone(source: dict[str, Any], tune: Train, tmp_path: Path) -> None:
    document = tune(tmp_path / "head", "--model.trained=head", "--data.precision=float32", "--trainer.max_epochs=30")
    assert document["trained"] == "head"
    # Predicting the background alone reaches 0.25.
    assert 0.25 < document["accuracy"] < 1
    split = tune(tmp_path / "split", "--model.trained=head", "--trainer.max_epochs=1", "--data.selection_share=0.3")
    assert [split["protocol"][size] for size in ("train_size", "selection_size", "validation_size")] == [13, 5, 5]
    # The ledger keeps billionths of a mean IoU.
    assert split["selection_accuracy"] * 1e9 == pytest.approx(round(split["selection_accuracy"] * 1e9), abs=1e-3)
    assert 0 <= split["selection_accuracy"] < 1


@pytest.mark.slow
def test_networks_that_predict_the_background_alone_are_named(
    source: dict[str, Any], tune: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict_one_class(monkeypatch, 0)
    photos = DrawnScenes(**SCENES).validation()  # type: ignore[arg-type]
    assert photos.maps is not None
    labels = np.stack([np.asarray(photos.maps.read(index)) for index in range(len(photos))])
    of_background = (labels == 0).mean() / len(np.unique(labels))
    warning = "predicts 'background' for all pixels of the validation photos."
    tuned = tune(tmp_path / "head", "--model.trained=head", "--data.precision=float32")
    trained = run(tmp_path / "alone", *SOURCE, f"--results.registry={tmp_path / 'alone.json'}")
    for results in (tuned, trained):
        assert results["accuracy"] == pytest.approx(of_background)
        assert results["warnings"] == [warning]
    entry = read_registry(tmp_path / "alone.json").entries["alone"]
    assert f"WARNING: The network {warning}" in entry.notes


def test_networks_of_pixels_and_of_photos_are_not_interchangeable(
    source: dict[str, Any], pool: Path, photo_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = f"--config={CONFIGS / 'target_accuracy.yaml'}"
    folders = ["--data.photos=headstart.datamodules.ClassFolders", f"--data.photos.root={photo_folder}"]
    chosen = [f"--data.backbone.registry={pool}", "--data.backbone.name=source"]
    line = error_line(capsys, tmp_path / "run", whole, *folders, *chosen)
    assert line.startswith("error: data.backbone.name: 'source' classifies pixels, but photos have one class each")
    comparison = [f"--config={CONFIGS / 'demo.yaml'}", *FEW[:1], "--trainer.logger=false"]
    with pytest.raises(SystemExit):
        train.main([*comparison, f"--trainer.default_root_dir={tmp_path / 'run'}"])
    assert "data.photos: the training photos have a class for every pixel" in capsys.readouterr().err

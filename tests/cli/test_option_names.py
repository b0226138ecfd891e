"""Mistakes that a source of photos or a backbone finds name the option of either command, once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart import datamodules, evaluate
from headstart.datamodules import PhotoSource
from headstart.tests.material.mistakes import error_line

Fit = Callable[..., Path]

# Wrong arguments of a source, and the argument that the message names; '' for the source as a whole.
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "AntsAndBees": ({"root": "nowhere"}, "root"),
    "CatsAndDogs": ({"root": "nowhere"}, "root"),
    "ClassFolders": ({"root": "nowhere"}, "root"),
    "ClassSubset": (
        {"source": "{class_path: headstart.datamodules.ClassFolders, init_args: {root: nowhere}}"},
        "source.root",
    ),
    "CsvPhotos": ({"file": "nowhere.csv"}, "file"),
    "DrawnObjects": ({"photos_per_class": 0}, "photos_per_class"),
    "DrawnPets": ({"train_size": 1}, ""),
    "DrawnScenes": ({"subjects": "[unicorn]"}, "subjects"),
    "HuggingFaceDataset": ({"path": "nowhere"}, "path"),
    "MapFolders": ({"root": "nowhere", "classes": "[road, car]"}, "root"),
    "OxfordPets": ({"root": "nowhere"}, "root"),
    "OwnDataset": ({"dataset": "torchvision.datasets.ImageFolder", "arguments": "{root: nowhere}"}, "arguments"),
    "TorchvisionDataset": ({"name": "Nothing"}, "name"),
    "TorchvisionSegmentation": ({"name": "VOCSegmentation", "root": "nowhere"}, "root"),
    "UnsplitClassFolders": ({"root": "nowhere"}, "root"),
}


def test_every_source_is_tried() -> None:
    exported = [getattr(datamodules, name) for name in datamodules.__all__]
    sources = [each for each in exported if issubclass(each, PhotoSource) and each is not PhotoSource]
    assert {source.__name__ for source in sources} == set(MISTAKES)


def listed(option: str, source: str) -> tuple[list[str], str]:
    """Return the options of a mistaken source, and the start of the error message."""
    arguments, named = MISTAKES[source]
    options = [
        f"--{option}=headstart.datamodules.{source}",
        *(f"--{option}.{name}={value}" for name, value in arguments.items()),
    ]
    if source == "ClassSubset":
        options.append(f"--{option}.classes=[a, b]")
    return options, f"error: {option}{named and '.'}{named}: "


@pytest.mark.parametrize("source", MISTAKES)
def test_in_train(source: str, fit: Fit, capsys: pytest.CaptureFixture[str]) -> None:
    options, beginning = listed("data.photos", source)
    line = error_line(capsys, lambda: fit(*options))
    assert line.startswith(beginning), line
    assert line.count("data.photos") == 1, line


@pytest.mark.parametrize("source", MISTAKES)
def test_in_evaluate(
    source: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options, beginning = listed("targets.pets", source)
    line = error_line(capsys, lambda: evaluate.main(["transferability", *options, "--logger=false"]))
    assert line.startswith(beginning), line
    assert line.count("targets.pets") == 1, line
    assert "data.photos" not in line


@pytest.mark.parametrize(
    ("option", "beginning"),
    [
        ("--data.backbone.name=mobilenet_v9", "error: data.backbone.name: "),
        ("--data.backbone.weights=IMAGENET", "error: data.backbone.weights: "),
        ("--data.backbone.weights=nowhere.pth", "error: data.backbone.weights: "),
        ("--data.backbone.model_args={width: 1}", "error: data.backbone"),
    ],
)
def test_of_the_backbone(option: str, beginning: str, fit: Fit, capsys: pytest.CaptureFixture[str]) -> None:
    line = error_line(capsys, lambda: fit("--data.backbone.weights=random", option))
    assert line.startswith(beginning), line
    assert line.count("data.backbone") == 1, line


def test_of_several_files_the_broken_one_is_named(fit: Fit, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "whole.yaml").write_text("seed_everything: 1")
    (tmp_path / "broken.yaml").write_text("data: [1, 2")
    line = error_line(capsys, lambda: fit("--config=whole.yaml", "--config", "broken.yaml"))
    assert line.startswith("error: config: broken.yaml cannot be read (while parsing"), line


METHODS = """
model:
  methods:
    steps: {class_path: headstart.modules.GradientDescent, init_args: {optimizer: {class_path: torch.optim.SGD,
        init_args: %s}}}
    mean: {class_path: headstart.modules.NearestClassMean, init_args: %s}
"""


@pytest.mark.parametrize(
    ("steps", "mean", "beginning"),
    [
        (
            "{lr: 0.1}",
            "{lr: 0.1}",
            "error: model.methods.mean.lr: there is no such option of headstart.modules.NearestClassMean",
        ),
        ("{lr: often, momentum: 0.5}", "{}", "error: model.methods.steps.optimizer.lr: expected a number"),
    ],
)
def test_the_method_is_named_whose_option_a_file_misspells(
    steps: str, mean: str, beginning: str, fit: Fit, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "methods.yaml").write_text(METHODS % (steps, mean))
    line = error_line(capsys, lambda: fit("--config=methods.yaml"))
    assert line.startswith(beginning), line


def test_init_args_misspelt(fit: Fit, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "data: {class_path: headstart.datamodules.FeatureStream, init_arg: {batch_size: 3}}"
    )
    line = error_line(capsys, lambda: fit("--config=mine.yaml"))
    assert line == "error: data.init_arg: there is no such key (closest: data.init_args)"

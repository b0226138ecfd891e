"""Arguments of a model belong to that model, whichever is named in a configuration and on the command line."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart import train
from headstart.datamodules import DrawnPets
from headstart.tests.material.blank_figures import blank_figures

SOURCE = "--config=source_training.yaml"  # of a MobileNetV2 with an argument of its own
NARROW = {"width_mult": 0.35}


def backbone(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    with pytest.raises(SystemExit):
        train.main([*options, "--print_config"])
    data = yaml.safe_load(capsys.readouterr().out)["data"]
    result: dict[str, Any] = data.get("init_args", data)["backbone"]
    return result


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], NARROW),
        (["--data.backbone.name", "mobilenet_v2"], NARROW),
        (["--data.backbone.name", "resnet18"], {}),
        (["--config=other.yaml"], {}),
        (["--config=other.yaml", "--data.backbone.name=mobilenet_v2"], {}),
        (["--data.backbone=configs/backbone/imagenet.yaml"], NARROW),
        (["--data.backbone.name=resnet18", "--data.backbone.model_args={groups: 2}"], {"groups": 2}),
        (["--data.backbone.name=a.b", "--data.backbone.model_args={c: null, d: [null]}"], {"c": None, "d": [None]}),
    ],
)
def test_another_model_begins_with_its_own(
    options: list[str], arguments: Any, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.yaml").write_text("data: {backbone: {name: resnet18}}")
    assert backbone(capsys, SOURCE, *options)["model_args"] == arguments


def test_of_a_configuration_that_refers_to_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.yaml").write_text(
        "class_path: FeatureStream\ninit_args: {photos: DrawnPets, backbone: backbone.yaml}"
    )
    (tmp_path / "backbone.yaml").write_text("{name: mobilenet_v2, weights: random, model_args: {width_mult: 0.35}}")
    (tmp_path / "mine.yaml").write_text("data: data.yaml\nmodel: {baseline: GradientDescent}")
    assert backbone(capsys, "--config=mine.yaml")["model_args"] == NARROW
    assert backbone(capsys, "--config=mine.yaml", "--data.backbone.name=resnet18")["model_args"] == {}


@pytest.mark.slow
def test_quickstart_takes_a_folder_of_photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    photos = DrawnPets(train_size=140, validation_size=2).train()
    for index, label in enumerate(photos.labels):
        path = tmp_path / "photos" / photos.classes[label] / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        photos.read(index).save(path)
    with blank_figures():
        train.main(
            [
                "--config=quickstart.yaml",
                "--data.backbone.weights=embedded",
                "--data.orderings=2",
                "--trainer.logger=false",
            ]
        )
    assert (tmp_path / "runs" / "quickstart" / "results.json").is_file()

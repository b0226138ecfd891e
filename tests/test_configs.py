"""Shipped configurations: what they point to."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart.modules.methods.catalogue import METHODS
from headstart.train import main

CONFIGS = Path(__file__).parents[1] / "configs"
ROOT = CONFIGS.parent
LOCAL = CONFIGS / "local" / "shared.yaml"
SWEEP = yaml.safe_load((CONFIGS / "sweep" / "benchmark.yaml").read_text())
TARGETS, SOURCES = (SWEEP["parameters"][name]["values"] for name in ("config", "data.backbone"))
ALL_TARGETS = [path for path in (CONFIGS / "data").glob("*.yaml") if path.stem != "cats_and_dogs_photos"]


def print_config(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as ended:
        main([*options, "--print_config"])
    assert ended.value.code == 0
    configuration: dict[str, Any] = yaml.safe_load(capsys.readouterr().out)
    return configuration


def test_no_shipped_configuration_points_outside_of_the_checkout() -> None:
    files = [path for path in CONFIGS.rglob("*") if path.is_file() and LOCAL.parent not in path.parents]
    assert len(files) > 15
    assert [path.name for path in files if "../shared" in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("name", ["cats_and_dogs.yaml", "fine_tuning.yaml"])
def test_local_override(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def data(*configs: Path) -> dict[str, Any]:
        arguments: dict[str, Any] = print_config(capsys, *map("--config={}".format, configs))["data"]["init_args"]
        return arguments

    shipped, local = data(CONFIGS / name), data(CONFIGS / name, LOCAL)
    assert shipped.pop("photos")["init_args"]["download"] is True
    assert local.pop("photos")["init_args"]["root"] == "../shared/data/cats_and_dogs"
    weights = {str(arguments["backbone"].pop("weights")) for arguments in (shipped, local)}
    assert weights == {"IMAGENET1K_V1", "../shared/weights/mobilenet_v2_imagenet.safetensors"}
    assert shipped == local


def test_frozen_methods_are_all_that_take_features() -> None:
    chosen = yaml.safe_load((CONFIGS / "model" / "frozen_methods.yaml").read_text())
    named = [chosen["baseline"], *chosen["methods"].values()]
    classes = {each if isinstance(each, str) else each["class_path"] for each in named}
    # One needs an extra, and weights that it fetches, the other a class of the user's.
    without = {"ScikitLearnClassifier", "OwnLightningModule"}
    there = {name for name, method in METHODS.items() if "features" in method.inputs} - without
    assert classes == {f"headstart.modules.{name}" for name in there}


def test_fine_tuning_methods_are_all_that_need_photos() -> None:
    chosen = yaml.safe_load((CONFIGS / "model" / "fine_tuning.yaml").read_text())
    named = [chosen["baseline"], *chosen["methods"].values()]
    classes = {each if isinstance(each, str) else each["class_path"] for each in named}
    for_photos = {f"headstart.modules.{name}" for name, method in METHODS.items() if method.inputs == ("photos",)}
    assert classes == for_photos | {"headstart.modules.GradientDescent", "headstart.modules.Replay"}


@pytest.mark.parametrize("target", TARGETS)
def test_benchmark_targets(target: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    chosen = print_config(capsys, f"--config={target}", f"--data.backbone={SOURCES[0]}", *SWEEP["command"][2:3])
    assert chosen["data"]["init_args"]["orderings"] == 100
    assert chosen["data"]["init_args"]["backbone"] == {
        "name": "mobilenet_v2",
        "weights": "../shared/weights/mobilenet_v2_imagenet.safetensors",
        "model_args": {},
        "preprocessing": None,
        "registry": None,
    }
    assert len(chosen["model"]["methods"]) == 13
    assert 0.2 < chosen["criterion"]["threshold"] < 1
    assert "the largest class" in (ROOT / target).read_text()


DEMO = CONFIGS / "data" / "drawn_pets.yaml"
PAIRS = [(target, CONFIGS / "backbone" / "random.yaml") for target in sorted(ALL_TARGETS)]
PAIRS += [(DEMO, source) for source in sorted((CONFIGS / "backbone").glob("*.yaml"))]


@pytest.mark.parametrize(("target", "source"), PAIRS, ids=lambda path: path.stem)
def test_targets_and_sources(target: Path, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = CONFIGS / "model" / "demo.yaml"
    chosen = print_config(capsys, f"--data={target}", f"--data.backbone={source}", f"--model={model}")
    assert chosen["data"]["init_args"]["backbone"]["weights"] == yaml.safe_load(source.read_text())["weights"]

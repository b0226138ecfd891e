"""Shipped configurations: what they point to, that they run, and that sweeps name options that exist."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart.datamodules import AntsAndBees
from headstart.modules.methods.catalogue import METHODS
from headstart.tests.material.root import ROOT, require_checkout
from headstart.tests.material.training import CONFIGS, run
from headstart.train import main

BENCHMARKS = ROOT / "benchmarks" / "local"
LOCAL = BENCHMARKS / "shared.yaml"
PUBLIC = CONFIGS / "sweep" / "benchmark.yaml"
PATHS = [path for path in (PUBLIC, BENCHMARKS / "sweep" / "benchmark.yaml") if path.exists()]
SUITES = {path: yaml.safe_load(path.read_text()) for path in PATHS}
# A target with the command and a source of its suite.
TARGETS = [
    (target, source, suite["command"][2])
    for suite in SUITES.values()
    for target in suite["parameters"]["config"]["values"]
    for source in suite["parameters"]["data.backbone"]["values"][:1]
]
COMPARISONS = sorted(path for path in CONFIGS.glob("*.yaml") if path.stem != "base" and "task:" not in path.read_text())
SWEEPS = sorted(path for folder in (CONFIGS, BENCHMARKS) for path in (folder / "sweep").glob("*.yaml"))
ALL_TARGETS = [path for path in (CONFIGS / "data").glob("*.yaml") if path.stem != "cats_and_dogs_photos"]


def print_config(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as ended:
        main([*options, "--print_config"])
    assert ended.value.code == 0
    configuration: dict[str, Any] = yaml.safe_load(capsys.readouterr().out)
    return configuration


def test_no_shipped_configuration_points_outside_of_the_checkout() -> None:
    files = [path for path in CONFIGS.rglob("*") if path.is_file()]
    assert len(files) > 15
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "benchmarks/local" not in text, path
        # Paths are relative to the working folder, the checkout, or to the file itself.
        for inside in re.findall(r"(?:\.\./)+[\w./-]*", text):
            target = (path.parent / inside).resolve()
            assert target.is_relative_to(ROOT), f"{path}: {inside}"
            assert target.exists(), f"{path}: {inside}"


@pytest.mark.parametrize("name", ["cats_and_dogs.yaml", "fine_tuning.yaml"])
def test_local_override(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_checkout()

    def data(*configs: Path) -> dict[str, Any]:
        arguments: dict[str, Any] = print_config(capsys, *map("--config={}".format, configs))["data"]["init_args"]
        return arguments

    shipped, local = data(CONFIGS / name), data(CONFIGS / name, LOCAL)
    assert shipped.pop("photos")["init_args"]["download"] is True
    assert local.pop("photos")["init_args"]["root"] == "../shared/data/cats_and_dogs"
    weights = {str(arguments["backbone"].pop("weights")) for arguments in (shipped, local)}
    assert weights == {"IMAGENET1K_V1", "../shared/weights/mobilenet_v2_imagenet.safetensors"}
    assert shipped == local


def read_methods(name: str) -> tuple[dict[str, Any], set[str]]:
    """Return the methods of a configuration, and the names of their classes."""
    chosen = yaml.safe_load((CONFIGS / "model" / f"{name}.yaml").read_text())
    named = [chosen["baseline"], *chosen["methods"].values()]
    paths = (each if isinstance(each, str) else each["class_path"] for each in named)
    return chosen, {path.removeprefix("headstart.modules.") for path in paths}


def test_configurations_of_methods_have_all_that_take_such_inputs() -> None:
    frozen, classes = read_methods("frozen_methods")
    # It needs an extra, and weights that it fetches.
    there = {name for name, method in METHODS.items() if "features" in method.inputs} - {"ScikitLearnClassifier"}
    assert classes == there
    for_photos = {name for name, method in METHODS.items() if method.inputs == ("photos",)}
    assert read_methods("fine_tuning")[1] == for_photos | {"GradientDescent", "Replay"}

    needs_head = {f"headstart.modules.{name}" for name, method in METHODS.items() if method.needs_source_head}
    kept = {name: each for name, each in frozen["methods"].items() if str(each) not in needs_head}
    assert len(kept) == len(frozen["methods"]) - 2
    assert read_methods("feature_methods")[0] == {"baseline": frozen["baseline"], "methods": kept}


@pytest.mark.slow
def test_benchmark_targets(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for target, source, model in TARGETS:
        data = print_config(capsys, f"--config={target}", f"--data.backbone={source}", model)["data"]["init_args"]
        assert data["orderings"] == 100, target
        assert data["backbone"].items() >= yaml.safe_load((ROOT / source).read_text()).items(), target
        assert "the largest class" in (ROOT / target).read_text().replace("\n# ", " ").lower(), target


def test_each_download_of_the_public_suite_has_a_digest() -> None:
    parameters = SUITES[PUBLIC]["parameters"]
    # Torchvision has digests of its own; the archive of cats and dogs is published without one.
    for name in parameters["config"]["values"]:
        text = (ROOT / name).read_text()
        assert "download: true" not in text or re.search("Torchvision|OxfordPets|CatsAndDogs|AntsAndBees", text), name
    assert re.fullmatch("[0-9a-f]{64}", AntsAndBees.sha256 or "")
    for name in parameters["data.backbone"]["values"]:
        weights = yaml.safe_load((ROOT / name).read_text())["weights"]
        assert re.fullmatch(r"IMAGENET1K_V[12]|https://\S+/[0-9a-f]{40}/\S+#sha256=[0-9a-f]{64}", weights), name


@pytest.mark.slow
def test_targets_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = [(target, CONFIGS / "backbone" / "random.yaml") for target in sorted(ALL_TARGETS)]
    pairs += [(CONFIGS / "data" / "drawn_pets.yaml", each) for each in sorted((CONFIGS / "backbone").glob("*.yaml"))]
    for target, source in pairs:
        model = CONFIGS / "model" / "demo.yaml"
        chosen = print_config(capsys, f"--data={target}", f"--data.backbone={source}", f"--model={model}")
        weights = yaml.safe_load(source.read_text())["weights"]
        assert chosen["data"]["init_args"]["backbone"]["weights"] == weights, (target, source)


@pytest.mark.usefixtures("shared_cache")
@pytest.mark.parametrize(
    "config",
    [pytest.param(path, marks=() if path.stem == "demo" else pytest.mark.slow) for path in COMPARISONS],
    ids=lambda path: path.stem,
)
def test_every_shipped_config_runs(
    config: Path, tmp_path: Path, photo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A registry that a configuration names lies in the checkout.
    monkeypatch.chdir(ROOT)
    options = ["--trainer.logger=false", "--data.max_samples=12", "--data.orderings=1", "--data.validation_size=8"]
    if config.stem != "demo":
        photos = ["--data.photos=headstart.datamodules.ClassFolders", f"--data.photos.root={photo_folder}"]
        backbone = "--data.backbone={name: mobilenet_v2, weights: embedded, model_args: {width_mult: 0.35}}"
        options += [*photos, backbone, "--data.batch_size=1", "--criterion.evaluate_every=1"]
    results = run(tmp_path, "--config", str(config), *options)
    assert results["complete"]
    assert results["evaluations"] >= 10
    assert all(len(scores["accuracy_at"]["10"]) == 1 for scores in results["methods"].values())


def test_every_sweep_names_options_that_exist(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    for path in SWEEPS:
        sweep = yaml.safe_load(path.read_text())
        fixed = [part for part in sweep["command"] if part.startswith("--")]
        print_config(capsys, *fixed, *(f"--{key}={each['values'][-1]}" for key, each in sweep["parameters"].items()))
        # Agents of W&B put the runs into this project and rank them by this metric; a group is a setting.
        assert (sweep["project"], sweep["metric"].keys()) == ("headstart", {"name", "goal"}), path
        assert sweep["command"][:2] == ["headstart", "train"], path
        assert not any("group" in option for option in fixed), path
        assert all(len(set(map(str, each["values"]))) > 1 for each in sweep["parameters"].values()), path

"""Every shipped configuration runs, and every shipped sweep names options that exist."""

from pathlib import Path

import pytest
import yaml

from headstart import train
from headstart.tests.material.root import ROOT
from headstart.tests.material.training import CONFIGS, run

pytestmark = pytest.mark.usefixtures("shared_cache")


COMPARISONS = sorted(path for path in CONFIGS.glob("*.yaml") if path.stem != "base" and "task:" not in path.read_text())


@pytest.mark.parametrize(
    "config",
    [pytest.param(path, marks=pytest.mark.slow if path.stem == "fine_tuning" else ()) for path in COMPARISONS],
    ids=lambda path: path.stem,
)
def test_every_shipped_config_runs(
    config: Path, tmp_path: Path, photo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A registry that a configuration names lies in the checkout.
    monkeypatch.chdir(ROOT)
    options = ["--trainer.logger=false", "--data.max_samples=12", "--data.orderings=1", "--data.validation_size=8"]
    if config.stem not in ("demo", "demo_source"):
        photos = ["--data.photos=headstart.datamodules.ClassFolders", f"--data.photos.root={photo_folder}"]
        backbone = "--data.backbone={name: mobilenet_v2, weights: embedded, model_args: {width_mult: 0.35}}"
        options += [*photos, backbone, "--data.batch_size=1", "--criterion.evaluate_every=1"]
    results = run(tmp_path, "--config", str(config), *options)
    assert results["complete"]
    assert results["evaluations"] >= 10
    assert all(len(scores["accuracy_at"]["10"]) == 1 for scores in results["methods"].values())


SWEEPS = sorted(
    path for folder in (CONFIGS, ROOT / "benchmarks" / "local") for path in (folder / "sweep").glob("*.yaml")
)


@pytest.mark.parametrize("sweep", SWEEPS, ids=lambda path: f"{path.parents[1].name}-{path.stem}")
def test_every_sweep_names_options_that_exist(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = yaml.safe_load(sweep.read_text())
    monkeypatch.chdir(ROOT)
    fixed = [part for part in content["command"] if part.startswith("--")]
    chosen = [f"--{key}={parameter['values'][-1]}" for key, parameter in content["parameters"].items()]
    with pytest.raises(SystemExit) as exit_info:
        train.main([*fixed, *chosen, "--print_config"])
    assert exit_info.value.code in (0, None)
    # Agents of W&B put the runs into this project and rank them by this metric; a group is a setting.
    assert content["project"] == "headstart"
    assert content["metric"].keys() == {"name", "goal"}
    assert content["command"][:2] == ["headstart", "train"]
    assert not any("group" in option for option in fixed)
    assert all(len(set(map(str, parameter["values"]))) > 1 for parameter in content["parameters"].values())

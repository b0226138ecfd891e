"""Source models through the command line: their files, what is not trained again, and whatever cuts training off."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from headstart.contract.documents import read_registry
from headstart.datamodules import ClassFolders
from headstart.modules.networks.build import build, known_accuracy
from headstart.modules.networks.normalization import Normalization
from headstart.modules.photo_training import PhotoTraining
from headstart.output.errors import INCOMPLETE
from headstart.tests.material.prepared_pictures import stack
from headstart.tests.material.training import CONFIGS, error_line, refuse, run, small_training

ROOT = CONFIGS.parent
CONFIG = f"--config={CONFIGS / 'source_training.yaml'}"
EPOCHS = 3


@pytest.fixture
def options(photo_folder: Path) -> list[str]:
    return [CONFIG, *small_training(photo_folder), f"--trainer.max_epochs={EPOCHS}", "--model.augmentation=[]"]


@pytest.fixture
def train_source(options: list[str]) -> Callable[..., dict[str, Any]]:
    return lambda folder, *more: run(folder, *options, *more)


Train = Callable[..., dict[str, Any]]


def test_the_model_of_the_registry_has_the_reported_accuracy(
    train_source: Train, photo_folder: Path, tmp_path: Path
) -> None:
    results = train_source(tmp_path / "source")
    assert {path.name for path in (tmp_path / "source").iterdir()} == {
        *("weights.safetensors", "registry.json", "config.yaml", "results.json")
    }
    known = read_registry(tmp_path / "source" / "registry.json")
    spec = known.networks(["source"], seed=0)["source"]
    network, preprocessing = build(spec)
    photos = ClassFolders(str(photo_folder)).validation()
    pixels = stack([preprocessing.prepare(photos.read(index)) for index in range(len(photos))])
    with torch.inference_mode():
        predicted = network(Normalization(preprocessing)(pixels)).argmax(1).numpy()
    assert abs((predicted == photos.labels).mean() - results["accuracy"]) <= 1 / len(photos)
    assert known_accuracy(spec) == pytest.approx(results["accuracy"], abs=1e-4)
    assert {value.dtype for value in load_file(spec.weights).values()} == {torch.float16}  # type: ignore[arg-type]
    assert known.entries["source"].output_dim == 1280
    # Batch norm was trained, too.
    assert network.state_dict()["features.0.1.running_mean"].abs().min() > 0


@pytest.mark.slow
def test_the_same_command_computes_nothing_and_another_configuration_is_refused(
    options: list[str], train_source: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    first = train_source(tmp_path / "source")
    (tmp_path / "source" / "registry.json").unlink()
    with monkeypatch.context() as patched:
        patched.setattr(PhotoTraining, "training_step", refuse)
        assert train_source(tmp_path / "source") == first
    assert (tmp_path / "source" / "registry.json").is_file()
    # Weights that are not those that were written are trained again.
    (tmp_path / "source" / "weights.safetensors").write_bytes(b"damaged")
    assert train_source(tmp_path / "source")["weights_sha256"] == first["weights_sha256"]
    line = error_line(capsys, tmp_path / "source", *options, "--data.batch_size=4", "--seed_everything=3")
    assert "results of another configuration (network, batch_size, seed); choose another folder" in line


@pytest.mark.parametrize("ending", [KeyboardInterrupt, pytest.param(None, marks=pytest.mark.slow)])
def test_training_that_is_cut_off_begins_again(
    ending: type[BaseException] | None, train_source: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train_source(tmp_path / "whole", "--results.name=one")
    step = PhotoTraining.training_step

    def cut_off(self: PhotoTraining, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        # 24 photos in batches of 5: within the last epoch.
        if self.global_step == 12 and ending is not None:
            raise ending
        self.trainer.should_stop = self.global_step == 12
        return step(self, batch, batch_idx)

    monkeypatch.setattr(PhotoTraining, "training_step", cut_off)
    with pytest.raises(SystemExit) as ended:
        train_source(tmp_path / "cut", "--results.name=one")
    monkeypatch.setattr(PhotoTraining, "training_step", step)
    assert ended.value.code == (INCOMPLETE if ending is None else 130)
    assert not list((tmp_path / "cut").glob("*.*"))
    cut = train_source(tmp_path / "cut", "--results.name=one")
    assert cut["weights_sha256"] == whole["weights_sha256"]
    # The folder's name is in the configuration.
    assert all(cut[name] == whole[name] for name in whole.keys() - {"times", "sha256", "files_sha256"})
    assert {path.suffix for path in (tmp_path / "cut").iterdir()} == {".json", ".yaml", ".safetensors"}


@pytest.mark.slow
def test_faults_are_one_line(
    options: list[str], photo_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = {
        ("--model.optimizer={class_path: torch.optim.SGD, init_args: {lr: 1e30}}",): "model.optimizer: the loss is ",
        ("--trainer.max_epochs=-1",): "trainer.max_epochs: -1 given; 1 or more",
        ("--trainer.logger=headstart.callbacks.DashboardLogger",): "trainer.logger: DashboardLogger mirrors",
        ("--data.backbone.name=squeezenet1_0", "--data.backbone.model_args={}"): "data.backbone.name: ",
        ("--results.name=vit[/b]",): "results.name: 'vit[/b]' cannot be a model's name in a registry; it must contain",
    }
    for more, beginning in refused.items():
        assert error_line(capsys, tmp_path / "run", *options, *more).startswith(f"error: {beginning}")
    shutil.rmtree(photo_folder / "train" / "dark")
    assert error_line(capsys, tmp_path / "run", *options).startswith("error: data.photos.root: ")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_shipped_configuration(tmp_path: Path) -> None:
    few = ["--data.photos.train_size=60", "--data.photos.validation_size=60", "--trainer.max_epochs=1"]
    assert len(run(tmp_path / "source", CONFIG, *few)["classes"]) == 60

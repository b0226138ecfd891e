"""Options of small tasks, on few small photos or drawings."""

import json
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from torch import Tensor

from headstart import train
from headstart.modules.photo_training import PhotoTraining

CONFIGS = Path(train.__file__).parent / "configs"
SMALL_DEMO = [
    *("--config", str(CONFIGS / "demo.yaml")),
    "--trainer.logger=false",
    "--data.orderings=3",
    "--data.max_samples=40",
    "--data.validation_size=100",
]


def small_training(photos: Path, weights: str = "random") -> list[str]:
    """Return options of photos in class folders and of a small network."""
    network = "{registry: null, name: mobilenet_v2, weights: %s, model_args: {width_mult: 0.25}, preprocessing: %s}"
    return [
        "--data.photos=headstart.datamodules.ClassFolders",
        f"--data.photos.root={photos}",
        f"--data.backbone={network % (weights, '{resize: 32, crop: 32}')}",
        "--data.batch_size=5",
        "--data.num_workers=0",
        "--trainer.accelerator=cpu",
        "--trainer.enable_progress_bar=false",
    ]


def run(folder: Path, *options: str) -> dict[str, Any]:
    """Run headstart train in this process and return its results."""
    train.main([*options, f"--trainer.default_root_dir={folder}"])
    results: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return results


def refuse(*_: object) -> NoReturn:
    """Fail where a stored result should be reused."""
    raise AssertionError("trained again")


def predict_one_class(monkeypatch: pytest.MonkeyPatch, index: int) -> None:
    """Let all networks that are trained predict one class alone."""
    forward = PhotoTraining.forward

    def biased(self: PhotoTraining, inputs: Tensor) -> Tensor:
        logits = forward(self, inputs)
        return logits + 1000 * (torch.arange(logits.shape[-1]) == index)

    monkeypatch.setattr(PhotoTraining, "forward", biased)


def error_line(capsys: pytest.CaptureFixture[str], folder: Path, *options: str, code: int = 1) -> str:
    """Return the one line that headstart train fails with."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        train.main([*options, f"--trainer.default_root_dir={folder}"])
    assert ended.value.code == code
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    return line

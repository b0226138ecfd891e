"""Methods that train the part of a backbone behind a freeze boundary, through headstart train."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart import train

METHODS = (
    "BiasOnly",
    "GradientDescent",
    "GradualUnfreezing",
    "L2SP",
    "LinearProbeThenFineTune",
    "LoRA",
    "NormalizationOnly",
    "Replay",
    "SideTuning",
)


def run(folder: Path, *options: str) -> dict[str, Any]:
    train.main(
        [
            "--data=headstart.datamodules.PhotoStream",
            "--data.photos=headstart.datamodules.DrawnPets",
            "--data.photos.train_size=40",
            "--data.photos.validation_size=20",
            "--data.backbone.name=mobilenet_v2",
            "--data.backbone.weights=embedded",
            "--data.backbone.model_args={width_mult: 0.35}",
            "--data.backbone.preprocessing={resize: 72, crop: 64}",
            "--data.precision=float32",
            "--data.num_workers=0",
            "--data.orderings=1",
            "--data.max_samples=8",
            "--data.batch_size=2",
            "--model.baseline=headstart.modules.HeadOnly",
            f"--model.methods={{{', '.join(f'{name}: headstart.modules.{name}' for name in METHODS)}}}",
            "--criterion.consecutive=4",
            "--trainer.accelerator=cpu",
            "--trainer.logger=false",
            f"--trainer.default_root_dir={folder}",
            *options,
        ]
    )
    results: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return results


@pytest.mark.slow
def test_methods_train_what_is_behind_the_boundary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results, correct = {}, {}
    for boundary in ("all", "features.14"):
        folder = tmp_path / boundary
        results[boundary] = run(folder, f"--data.trainable_from={boundary}")
        assert results[boundary]["protocol"]["trainable_from"] == boundary
        with np.load(folder / "curves.npz") as stored:
            correct[boundary] = dict(zip(stored["methods"], stored["correct"], strict=True))
        assert set(correct[boundary]) == {"baseline", *METHODS}
        assert all(counts.min() >= 0 for counts in correct[boundary].values())
    assert results["all"]["protocol"]["stream_sha256"] != results["features.14"]["protocol"]["stream_sha256"]
    # Methods that train nothing in front of the boundary have the same result with and without it.
    for name in ("baseline", "LinearProbeThenFineTune"):
        assert np.array_equal(correct["all"][name], correct["features.14"][name])

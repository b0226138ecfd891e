"""Methods that train the part of a backbone behind a freeze boundary, through headstart train."""

from pathlib import Path

import numpy as np
import pytest

from headstart.tests.material.training import SMALL_DEMO, run

METHODS = (
    *("BiasOnly", "GradientDescent", "GradualUnfreezing", "L2SP", "LinearProbeThenFineTune", "LoRA"),
    *("NormalizationOnly", "Replay", "SideTuning"),
)
OPTIONS = [
    *SMALL_DEMO,
    *("--data=headstart.datamodules.PhotoStream", "--data.photos.train_size=40", "--data.validation_size=20"),
    *("--data.backbone.preprocessing={resize: 72, crop: 64}", "--data.precision=float32", "--data.num_workers=0"),
    *("--data.orderings=1", "--data.max_samples=8", "--data.batch_size=2", "--criterion.consecutive=4"),
    *("--model.baseline=headstart.modules.HeadOnly", "--trainer.accelerator=cpu"),
    f"--model.methods={{{', '.join(f'{name}: headstart.modules.{name}' for name in METHODS)}}}",
]


@pytest.mark.slow
def test_methods_train_what_is_behind_the_boundary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    streams, correct = set(), {}
    for boundary in ("all", "features.14"):
        protocol = run(tmp_path / boundary, *OPTIONS, f"--data.trainable_from={boundary}")["protocol"]
        assert protocol["trainable_from"] == boundary
        streams.add(protocol["stream_sha256"])
        with np.load(tmp_path / boundary / "curves.npz") as stored:
            correct[boundary] = dict(zip(stored["methods"], stored["correct"], strict=True))
        assert set(correct[boundary]) == {"baseline", *METHODS}
        assert all(counts.min() >= 0 for counts in correct[boundary].values())
    assert len(streams) == 2
    # Methods that train nothing in front of the boundary have the same result with and without it.
    for name in ("baseline", "LinearProbeThenFineTune"):
        assert np.array_equal(correct["all"][name], correct["features.14"][name])

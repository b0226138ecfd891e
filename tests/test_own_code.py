"""Methods, streams, photos, networks and callbacks of a user's own: all of their code is part of the key."""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.datamodules.sample_stream import SampleStream
from headstart.tests.material.scripted_runs import read

FILES = {
    "own_methods": """\
import torch
from headstart.modules import GradientDescent, NearestClassMean

class Scaled(NearestClassMean):
    def __init__(self, clip: float = float("inf"), **kwargs):
        super().__init__()
        self.sign = kwargs["sign"]

    def forward(self, inputs):
        return super().forward(inputs) * self.sign

class Late(NearestClassMean):
    def adapt(self, inputs, labels):
        import own_part
        super().adapt(inputs * own_part.S, labels)

class LateText(NearestClassMean):
    def adapt(self, inputs, labels):
        exec("scale = 2.0")
        super().adapt(inputs, labels)

class Spoils(NearestClassMean):
    def begin(self, start):
        super().begin(start)
        self.batches = 0

    def adapt(self, inputs, labels):
        self.batches += 1
        if self.batches == 9:
            self.start.samples.numpy()[:] = 0
        super().adapt(inputs, labels)

class Gathers(GradientDescent):
    def adapt(self, inputs, labels):
        self.bias.sum().backward()

    def forward(self, inputs):
        # The first class is predicted for as many samples as batches have left a gradient.
        first = torch.arange(len(inputs)) < self.bias.grad[0, 0]
        return torch.stack([first, ~first], -1).float().expand(len(self.start.ordering_numbers), -1, -1)
""",
    "own_stream": """\
from headstart.datamodules import FeatureStream

class Scaled(FeatureStream):
    def __init__(self, by: float = 0.5, **kwargs):
        super().__init__(**kwargs)
        self.by = by

    def _gather(self, samples):
        inputs, labels, indices = super()._gather(samples)
        return inputs * self.by, labels, indices
""",
    "own_photos": """\
import hashlib
import numpy as np
from PIL import Image
from headstart.datamodules import Photos, PhotoSource
from own_part import S

class Own(Photos):
    classes = ("a", "b")

    def __init__(self, count, seed):
        self.names = [f"{seed} {index}" for index in range(count)]
        self.labels = np.arange(count) % 2
        self.seed = seed

    def read(self, index):
        drawn = np.random.default_rng((self.seed, index)).integers(0, 100, (32, 32, 3))
        return Image.fromarray((drawn * S + 20 * self.labels[index]).astype(np.uint8))

    def digest(self, index):
        return hashlib.sha256(self.names[index].encode()).hexdigest()

class Source(PhotoSource):
    name = "own"

    def train(self):
        return Own(30, 0)

    def validation(self):
        return Own(12, 1)
""",
    "own_network": """\
from torch import nn
import own_part

class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 5, stride=4)
        self.classifier = nn.Linear(8, 10)

    def forward(self, inputs):
        return self.classifier(self.convolution(inputs).mean((2, 3)) * own_part.S)
""",
    "own_part": "S = 1\n",
    "own_flip": """\
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import LambdaCallback

class Flip(Callback):
    def __init__(self, by=1):
        self.by = by

    def on_train_batch_start(self, trainer, module, batch, index):
        batch[1].copy_((batch[1] + self.by) % 2)

def flip(trainer, module, batch, index):
    batch[1].copy_(1 - batch[1])
""",
}
STREAMED, DRAWN = "--data=own_stream.Scaled", "--data.photos=own_photos.Source"
BUILT = (
    "--data.backbone={name: own_network.Tiny, model_args: {}, weights: random, preprocessing: {resize: 32, crop: 32}}"
)
FLIPPED = "--trainer.callbacks=own_flip.Flip"
FLIPPED_BY_TWO = '--trainer.callbacks={"class_path": "own_flip.Flip", "init_args": {"by": 2}}'
LAMBDA = '{"class_path": "own_flip.LambdaCallback", "init_args": {"on_train_batch_start": "own_flip.flip"}}'
Run = Callable[..., dict[str, Any]]


def method(path: str, **keywords: object) -> str:
    described = {"class_path": f"own_methods.{path}", **({"dict_kwargs": keywords} if keywords else {})}
    return f"--model.methods={json.dumps({'mine': described})}"


SCALED = method("Scaled", sign=1)


def times(results: dict[str, Any]) -> tuple[int, int]:
    return results["times"]["computed_traces"], results["times"]["reused_traces"]


@pytest.fixture
def run(fit: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run comparisons on one ledger, each with its files as in a process of its own, and return their results."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("HEADSTART_LEDGER", str(tmp_path / "ledger"))

    def begin(*options: str, folder: str, **files: str) -> dict[str, Any]:
        for name, text in {**FILES, **files}.items():
            (tmp_path / f"{name}.py").write_text(text)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return read(fit(*options, folder=folder))

    return begin


def edit(name: str, old: str, new: str) -> dict[str, str]:
    return {name: FILES[name].replace(old, new)}


# Runs on one ledger, one after the other: options, edited files, and how many traces are computed, of four.
RUNS: list[tuple[list[str], dict[str, str], int]] = [
    ([], {}, 4),
    ([SCALED], {}, 2),
    ([SCALED], {"unused": "# 1"}, 0),
    ([SCALED], edit("own_methods", "import torch", "import torch  # a comment"), 2),
    # What all methods are fed.
    ([STREAMED], {}, 4),
    ([STREAMED], {"unused": "# 2"}, 0),
    ([STREAMED, "--data.by=30"], {}, 4),
    ([STREAMED], edit("own_stream", "* self.by", "/ self.by"), 4),
    ([DRAWN], {}, 4),
    ([DRAWN], {"own_part": "S = 2\n"}, 4),
    ([BUILT], {}, 4),
    ([BUILT, SCALED], {}, 4),
    ([BUILT, SCALED], {"unused": "# 3"}, 0),
    ([BUILT], {"own_part": "S = 2\n"}, 4),
    # Callbacks, of which Lightning's own observe unless they call code of the user's own.
    ([FLIPPED], {}, 4),
    ([FLIPPED], {"unused": "# 4"}, 0),
    ([FLIPPED_BY_TWO], {}, 4),
    ([FLIPPED], edit("own_flip", "% 2", "% 2 * 1"), 4),
    (["--trainer.callbacks=DeviceStatsMonitor"], {}, 0),
    ([f"--trainer.callbacks={LAMBDA}"], {}, 4),
    # Methods that run other code are measured every time.
    *[([method("Late")], {}, 2)] * 2,
    *[([method("LateText")], {}, 2)] * 2,
]


@pytest.mark.slow
def test_an_edit_measures_again_what_it_can_touch(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for number, (options, files, computed) in enumerate(RUNS):
        results = run(*options, folder=f"run {number}", **files)
        if times(results) != (computed, 4 - computed):
            wrong.append((options, files, times(results)))
        if options == [SCALED]:
            # Also what the signature does not name.
            assert results["methods"]["mine"]["key"]["hyperparameters"] == {"clip": "inf", "sign": 1}
    assert not wrong
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("Traces of mine are not stored: ") == 4
    for reason in ("own_part first ran", "<a text that"):
        assert f"Traces of mine are not stored: {reason}" in said


@pytest.mark.slow
def test_an_edit_while_features_are_computed_is_not_what_ran(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run(SCALED, folder="before")
    setup = SampleStream.setup

    def edit_meanwhile(stream: SampleStream, stage: str) -> None:
        (tmp_path / "own_methods.py").write_text(FILES["own_methods"].replace("* self.sign", "* 0"))
        setup(stream, stage)

    monkeypatch.setattr(SampleStream, "setup", edit_meanwhile)
    after = run(SCALED, folder="after")
    assert after["methods"] == before["methods"]
    assert times(after) == (0, 4)


@pytest.mark.slow
def test_nothing_of_a_pass_that_a_method_spoils_is_a_result(run: Run, tmp_path: Path) -> None:
    options = ["--model.baseline=LogisticRegression", "--criterion.threshold=1"]
    before = run(*options, "--results.ledger=own", folder="before")
    with pytest.raises(SystemExit):
        run(*options, method("Spoils"), folder="spoilt")
    assert not (tmp_path / "spoilt" / "results.json").exists()
    after = run(*options, folder="after")
    assert times(after)[1] == 0
    assert after["methods"] == before["methods"]


@pytest.mark.slow
def test_evaluations_leave_gradients_alone(run: Run, tmp_path: Path) -> None:
    options = method("Gathers"), "--criterion.threshold=1"
    run(*options, folder="often")
    run(*options, "--criterion.evaluate_every=4", folder="seldom")
    often, seldom = (dict(np.load(tmp_path / name / "curves.npz"))["correct"][1] for name in ("often", "seldom"))
    assert seldom.shape[1] == 6
    assert len(np.unique(seldom)) > 1
    assert np.array_equal(often[:, 3::4], seldom)


def test_results_name_callbacks(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    twice = ["--trainer.callbacks+=own_flip.Flip"] * 2
    document = run(*twice, folder="run")
    described = document["protocol"]["callbacks"]
    assert [*described] == ["own_flip.Flip", "own_flip.Flip (2)"]
    assert {"headstart", "own_flip"} <= described["own_flip.Flip"]["code"].keys()
    assert any("own_flip.Flip" in warning for warning in document["warnings"])
    with pytest.raises(SystemExit):
        run(*twice, folder="run", **edit("own_flip", "% 2", "% 2 * 1"))
    assert "holds results of another configuration (callbacks" in capsys.readouterr().err

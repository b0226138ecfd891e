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

class Plain(NearestClassMean):
    def begin(self, start):
        super().begin(start)
        torch.rand(3)

class Drops(Plain):
    def adapt(self, inputs, labels):
        super().adapt(torch.nn.functional.dropout(inputs), labels)

class Gathers(GradientDescent):
    def adapt(self, inputs, labels):
        self.bias.sum().backward()

    def forward(self, inputs):
        # The first class is predicted for as many samples as batches have left a gradient.
        first = torch.arange(len(inputs)) < self.bias.grad[0, 0]
        return torch.stack([first, ~first], -1).float().expand(len(self.start.ordering_numbers), -1, -1)
""",
    "own_stream": """\
import os
from headstart.datamodules import FeatureStream

class Scaled(FeatureStream):
    factor = float(os.environ.get("ROTCAF"[::-1], 2))

    def __init__(self, by: float = 0.5, **kwargs):
        super().__init__(**kwargs)
        self.by = by

    def _gather(self, samples, views):
        inputs, labels, indices = super()._gather(samples, views)
        return inputs * self.by * self.factor, labels, indices
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


@pytest.mark.slow
def test_an_edit_measures_ones_own_methods_again_and_no_others(run: Run) -> None:
    first = run(SCALED, folder="first")
    # Also what the signature does not name.
    assert first["methods"]["mine"]["key"]["hyperparameters"] == {"clip": "inf", "sign": 1}
    edited = {"own_methods": f"# A comment.\n{FILES['own_methods']}"}
    runs = [first, run(SCALED, folder="again"), run(SCALED, folder="edited", **edited)]
    assert [times(each) for each in runs] == [(4, 0), (0, 4), (2, 2)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "files", "more"),
    [
        (STREAMED, {}, ["--data.by=30"]),
        (STREAMED, {"own_stream": FILES["own_stream"].replace("* self.by", "/ self.by")}, []),
        (DRAWN, {"own_part": "S = 2\n"}, []),
        (BUILT, {"own_part": "S = 2\n"}, []),
    ],
    ids=["argument of a stream", "code of a stream", "code that photos reach", "code that a network reaches"],
)
def test_an_edit_beside_the_methods_measures_all_again(
    option: str, files: dict[str, str], more: list[str], run: Run
) -> None:
    runs = run(option, folder="first"), run(option, *more, folder="second", **files)
    assert [times(each) for each in runs] == [(4, 0), (4, 0)]


def test_the_same_code_is_not_measured_again(run: Run) -> None:
    runs = [run(BUILT, SCALED, folder=folder, unused=f"# {folder}") for folder in ("first", "second")]
    assert [times(each) for each in runs] == [(4, 0), (0, 4)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ran"), [("Late", "own_part first ran"), ("LateText", "<a text that")])
def test_a_method_that_runs_other_code_is_not_stored(
    run: Run, capsys: pytest.CaptureFixture[str], name: str, ran: str
) -> None:
    runs = [run(method(name), folder=folder) for folder in ("first", "again")]
    assert [times(each) for each in runs] == [(4, 0), (2, 2)]
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("Traces of mine are not stored: ") == 2
    assert f"Traces of mine are not stored: {ran}" in said


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
@pytest.mark.parametrize(("drawing", "orderings"), [("Drops", 2), ("Drops", 1), ("Plain", 2)])
def test_draws_for_several_orderings_at_once_are_warned_of(
    drawing: str, orderings: int, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run(method(drawing), f"--data.orderings={orderings}", folder="run")
    warned = "WARNING: mine drew from a global generator" in " ".join(capsys.readouterr().out.split())
    assert warned == (drawing == "Drops" and orderings == 2)


@pytest.mark.slow
def test_evaluations_leave_gradients_alone(run: Run, tmp_path: Path) -> None:
    options = method("Gathers"), "--criterion.threshold=1"
    run(*options, folder="often")
    run(*options, "--criterion.evaluate_every=4", folder="seldom")
    often, seldom = (dict(np.load(tmp_path / name / "curves.npz"))["correct"][1] for name in ("often", "seldom"))
    assert seldom.shape[1] == 6
    assert len(np.unique(seldom)) > 1
    assert np.array_equal(often[:, 3::4], seldom)


@pytest.mark.slow
def test_a_callback_and_its_code_and_arguments_are_part_of_the_key(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    by_two = '--trainer.callbacks={"class_path": "own_flip.Flip", "init_args": {"by": 2}}'
    edited = {"own_flip": FILES["own_flip"].replace("% 2", "% 2 * 1")}
    runs = [run(FLIPPED, folder="flipped"), run(folder="plain"), run(FLIPPED, folder="again")]
    runs += [run(by_two, folder="other"), run(FLIPPED, folder="edited", **edited)]
    measured = times(runs[0])[0]
    assert [times(each) for each in runs] == [(measured, 0), (measured, 0), (0, measured), (measured, 0), (measured, 0)]
    with pytest.raises(SystemExit):
        run(FLIPPED, folder="flipped", **edited)
    assert "holds results of another configuration (callbacks" in capsys.readouterr().err


def test_results_name_callbacks(run: Run) -> None:
    document = run("--trainer.callbacks+=own_flip.Flip", "--trainer.callbacks+=own_flip.Flip", folder="run")
    described = document["protocol"]["callbacks"]
    assert [*described] == ["own_flip.Flip", "own_flip.Flip (2)"]
    assert {"headstart", "own_flip"} <= described["own_flip.Flip"]["code"].keys()
    assert any("own_flip.Flip" in warning for warning in document["warnings"])


@pytest.mark.slow
def test_observers_of_lightning_are_no_part_of_the_key(run: Run) -> None:
    plain = run(folder="plain")
    timed = run("--trainer.callbacks=DeviceStatsMonitor", folder="timed")
    assert times(timed) == (0, sum(times(plain)))
    assert "callbacks" not in timed["protocol"]
    # But those that call code of the user's own are.
    option = '{"class_path": "own_flip.LambdaCallback", "init_args": {"on_train_batch_start": "own_flip.flip"}}'
    assert times(run(f"--trainer.callbacks={option}", folder="flipped")) == times(plain)

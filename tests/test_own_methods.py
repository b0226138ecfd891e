"""Traces of one's own methods are found by what made the methods, through the command line of headstart train."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from headstart.datamodules.sample_stream import SampleStream
from headstart.tests.material.scripted_runs import read

MINE = """\
import torch
from headstart.modules import GradientDescent, NearestClassMean

class Scaled(NearestClassMean):
    def __init__(self, clip: float = float("inf"), **kwargs):
        super().__init__()
        self.sign = kwargs["sign"]

    def forward(self, inputs):
        return super().forward(inputs) * self.sign

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
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write the module of one's own methods, and forget it at the end."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HEADSTART_LEDGER", str(tmp_path / "ledger"))
    importlib.invalidate_caches()
    (tmp_path / "own_methods.py").write_text(MINE)
    yield tmp_path / "own_methods.py"
    sys.modules.pop("own_methods", None)


def method(path: str, **keywords: object) -> str:
    return json.dumps(
        {"mine": {"class_path": f"own_methods.{path}", **({"dict_kwargs": keywords} if keywords else {})}}
    )


@pytest.mark.slow
def test_an_edit_measures_ones_own_methods_again_and_no_others(mine: Path, fit: Callable[..., Path]) -> None:
    def counts(folder: str) -> tuple[int, int]:
        document = read(fit(f"--model.methods={method('Scaled', sign=1)}", folder=folder))
        # Also what the signature does not name.
        assert document["methods"]["mine"]["key"]["hyperparameters"] == {"clip": "inf", "sign": 1}
        times = document["times"]
        return times["computed_traces"], times["reused_traces"]

    assert counts("first") == (4, 0)
    assert counts("again") == (0, 4)
    sys.modules.pop("own_methods")
    mine.write_text(f"# A comment.\n{MINE}")
    assert counts("edited") == (2, 2)


@pytest.mark.slow
def test_traces_of_an_own_method_on_an_own_network_are_stored(mine: Path, fit: Callable[..., Path]) -> None:
    (mine.parent / "own_network.py").write_text(
        "from torch import nn\n"
        "def tiny():\n"
        "    layers = nn.Conv2d(3, 8, 3, stride=4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)\n"
        "    return nn.Sequential(*layers)\n"
    )
    network = "{name: own_network.tiny, model_args: {}, weights: random, preprocessing: {resize: 32, crop: 32}}"
    for folder, computed in (("first", 4), ("again", 0)):
        run = fit(f"--model.methods={method('Scaled', sign=1)}", f"--data.backbone={network}", folder=folder)
        assert read(run)["times"]["computed_traces"] == computed
        # Each command is a process of its own.
        sys.modules.pop("own_network")


@pytest.mark.slow
def test_a_method_that_imports_while_it_runs_is_not_stored(
    mine: Path, fit: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (mine.parent / "own_late.py").write_text("S = 1\n")
    mine.write_text(
        "from headstart.modules import NearestClassMean\n"
        "class Late(NearestClassMean):\n"
        "    def adapt(self, inputs, labels):\n"
        "        import own_late\n"
        "        super().adapt(inputs * own_late.S, labels)\n"
    )
    for folder, computed in (("first", 4), ("again", 2)):
        assert read(fit(f"--model.methods={method('Late')}", folder=folder))["times"]["computed_traces"] == computed
        sys.modules.pop("own_late")
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("Traces of mine are not stored: own_late was imported while they ran; import it at the top") == 2


@pytest.mark.slow
def test_an_edit_while_features_are_computed_is_not_what_ran(
    mine: Path, fit: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read(fit(f"--model.methods={method('Scaled', sign=1)}", folder="before"))
    setup = SampleStream.setup

    def edit_meanwhile(stream: SampleStream, stage: str) -> None:
        mine.write_text(MINE.replace("* self.sign", "* 0"))
        setup(stream, stage)

    monkeypatch.setattr(SampleStream, "setup", edit_meanwhile)
    after = read(fit(f"--model.methods={method('Scaled', sign=1)}", folder="after"))
    assert after["methods"] == before["methods"]
    assert after["times"]["computed_traces"] == 0


@pytest.mark.slow
def test_nothing_of_a_pass_that_a_method_spoils_is_a_result(mine: Path, fit: Callable[..., Path]) -> None:
    options = ["--model.baseline=LogisticRegression", "--criterion.threshold=1"]
    before = read(fit(*options, "--results.ledger=own", folder="before"))
    with pytest.raises(SystemExit):
        fit(*options, f"--model.methods={method('Spoils')}", folder="spoilt")
    assert not (mine.parent / "spoilt" / "results.json").exists()
    after = read(fit(*options, folder="after"))
    assert after["times"]["reused_traces"] == 0
    assert after["methods"] == before["methods"]


@pytest.mark.slow
@pytest.mark.parametrize(("drawing", "orderings"), [("Drops", 2), ("Drops", 1), ("Plain", 2)])
def test_draws_for_several_orderings_at_once_are_warned_of(
    drawing: str, orderings: int, mine: Path, fit: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    mine.write_text(
        "import torch\nfrom headstart.modules import NearestClassMean\n"
        "class Plain(NearestClassMean):\n"
        "    def begin(self, start):\n"
        "        super().begin(start)\n"
        "        torch.rand(3)\n"
        "class Drops(Plain):\n"
        "    def adapt(self, inputs, labels):\n"
        "        super().adapt(torch.nn.functional.dropout(inputs), labels)\n"
    )
    fit(f"--model.methods={method(drawing)}", f"--data.orderings={orderings}")
    warned = "WARNING: mine drew from a global generator" in " ".join(capsys.readouterr().out.split())
    assert warned == (drawing == "Drops" and orderings == 2)


@pytest.mark.slow
def test_evaluations_leave_gradients_alone(mine: Path, fit: Callable[..., Path]) -> None:
    options = [f"--model.methods={method('Gathers')}", "--criterion.threshold=1"]
    often = fit(*options, folder="often")
    seldom = fit(*options, "--criterion.evaluate_every=4", folder="seldom")
    correct = [dict(np.load(folder / "curves.npz"))["correct"][1] for folder in (often, seldom)]
    assert correct[1].shape[1] == 6
    assert len(np.unique(correct[1])) > 1
    assert np.array_equal(correct[0][:, 3::4], correct[1])

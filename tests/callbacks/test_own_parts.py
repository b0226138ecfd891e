"""Streams, photos and networks of a user's own are part of the key, with all code that they reach."""

import importlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

STREAM = """\
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
"""
PHOTOS = """\
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
"""
NETWORK = """\
from torch import nn
import own_part
class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 5, stride=4)
        self.classifier = nn.Linear(8, 10)
    def forward(self, inputs):
        return self.classifier(self.convolution(inputs).mean((2, 3)) * own_part.S)
"""
STREAMED, DRAWN = ["--data=own_stream.Scaled"], ["--data.photos=own_photos.Source"]
BUILT = ["--data.backbone.name=own_network.Tiny", "--data.backbone.model_args={}"]
FILES = {"own_stream.py": STREAM, "own_photos.py": PHOTOS, "own_network.py": NETWORK, "own_part.py": "S = 1\n"}
PART = {"own_part.py": "S = 2\n"}
Measure = Callable[..., list[int]]


@pytest.fixture
def measure(fit: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Run two comparisons on one ledger, with files and options of each, and return how many traces each measured."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("HEADSTART_LEDGER", str(tmp_path / "ledger"))

    def run(folder: str, files: Mapping[str, str], options: list[str]) -> int:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
            monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
        for name in FILES:
            monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
        importlib.invalidate_caches()
        times = json.loads((fit(*options, folder=folder) / "results.json").read_text())["times"]
        return int(times["computed_traces"])

    return lambda first, files, second: [run("first", FILES, first), run("second", files, second)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "files", "second"),
    [
        (STREAMED, {}, [*STREAMED, "--data.by=30"]),
        (STREAMED, {"own_stream.py": STREAM.replace("* self.by", "/ self.by")}, STREAMED),
        (DRAWN, PART, DRAWN),
        (BUILT, PART, BUILT),
    ],
    ids=["argument of a stream", "code of a stream", "code that photos reach", "code that a network reaches"],
)
def test_an_edit_is_measured(measure: Measure, first: list[str], files: dict[str, str], second: list[str]) -> None:
    assert measure(first, files, second) == [4, 4]


def test_the_same_code_is_not_measured_again(measure: Measure) -> None:
    assert measure(BUILT, {"unused.py": "S = 1\n"}, BUILT) == [4, 0]

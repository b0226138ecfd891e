"""Traces of one's own methods are found by what made the methods, through the command line of train.py."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from datamodules.sample_stream import SampleStream

MINE = """\
from modules import NearestClassMean

class Scaled(NearestClassMean):
    def __init__(self, clip: float = float("inf"), **kwargs):
        super().__init__()
        self.sign = kwargs["sign"]

    def forward(self, inputs):
        return super().forward(inputs) * self.sign

def upright() -> NearestClassMean:
    return NearestClassMean()

def flipped() -> NearestClassMean:
    return Scaled(sign=-1)
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


def read(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return document


def test_arguments_that_no_signature_names_tell_traces_apart(mine: Path, fit: Callable[..., Path]) -> None:
    upright, flipped = (
        read(fit(f"--model.methods={method('Scaled', sign=sign)}", folder=f"sign{sign}")) for sign in (1, -1)
    )
    assert flipped["times"]["computed_traces"] == flipped["times"]["reused_traces"] == 2
    assert upright["methods"]["mine"]["provenance"]["hyperparameters"] == {"clip": "inf", "sign": 1}
    assert upright["methods"]["mine"]["accuracy_at"] != flipped["methods"]["mine"]["accuracy_at"]


def test_functions_that_make_methods_tell_traces_apart(mine: Path, fit: Callable[..., Path]) -> None:
    upright, flipped = (read(fit(f"--model.methods={method(name)}", folder=name)) for name in ("upright", "flipped"))
    assert flipped["times"]["computed_traces"] == 2
    assert upright["methods"]["mine"]["provenance"]["function"] == "own_methods.upright"
    assert upright["methods"]["mine"]["accuracy_at"] != flipped["methods"]["mine"]["accuracy_at"]


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

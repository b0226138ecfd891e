"""Custom code runs only where the operator allows its module."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from headstart.modules.networks.weights import weights_digest
from headstart.tests.material.mistakes import refusal
from headstart.tests.material.networks import build_network

CODE = """
from pathlib import Path
from torch import nn

Path(__file__).with_suffix(".ran").touch()

def build(width=3):
    return nn.Sequential(nn.Linear(2, width), nn.Dropout()).double()

def halve():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).half()

def text():
    return "a network"

def fail():
    raise LookupError("no such\\nlayer")
"""


@pytest.fixture
def import_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write a package `zoo` with a module `zoo.birds`; return the file that this module creates when it is imported."""
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "__init__.py").touch()
    (tmp_path / "zoo" / "birds.py").write_text(CODE)
    (tmp_path / "zoology.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "zoo" / "birds.ran"
    for module in [name for name in sys.modules if name.partition(".")[0] in {"zoo", "zoology"}]:
        del sys.modules[module]


def build(
    path: object, allowed: list[str], weights: str | None = None, name: str = "a", **parameters: Any
) -> nn.Module:
    return build_network(name, "custom", weights, parameters={"name": path, **parameters}, allowed=allowed)


def refused(path: object, allowed: list[str], weights: str | None = None, **parameters: Any) -> str:
    message = refusal(partial(build, path, allowed, weights, **parameters))
    assert message.startswith("model 'a': ")
    return message


def test_allowed_module(import_marker: Path) -> None:
    allowed = ["other", "zoo"]
    build("zoo.birds.build", ["zoo.birds"])
    network = build("zoo.birds.build", allowed, width=5)
    assert import_marker.exists()
    assert isinstance(network, nn.Sequential)
    assert [(name, tuple(value.shape), value.dtype) for name, value in network.named_parameters()] == [
        ("0.weight", (5, 2), torch.float32),
        ("0.bias", (5,), torch.float32),
    ]
    assert not network.training
    assert not network[1].training
    halved = build("zoo.birds.halve", allowed)
    assert {value.dtype for value in halved.state_dict().values() if value.is_floating_point()} == {torch.float32}
    assert halved(torch.ones(1, 2)).dtype == torch.float32
    again, other = build("zoo.birds.build", allowed, width=5), build("zoo.birds.build", allowed, name="b", width=5)
    assert weights_digest(network) == weights_digest(again) != weights_digest(other)


def test_nothing_is_imported_from_another_module(import_marker: Path) -> None:
    for allowed in ([], [""], ["zoology"], ["zoo.birds.build"], ["zoo.bird"]):
        assert "custom code of the module 'zoo.birds' is not allowed" in refused("zoo.birds.build", allowed)
    assert not import_marker.exists()
    assert "zoo" not in sys.modules
    assert "'zoology' is not allowed" in refused("zoology.build", ["zoo"])


def test_code_that_gives_no_network(import_marker: Path) -> None:
    reasons = {
        "zoo.fish.build": "ModuleNotFoundError: No module named 'zoo.fish'",
        "zoo.birds.fly": "AttributeError: module 'zoo.birds' has no attribute 'fly'",
        "zoo.birds.text": "zoo.birds.text returns a str, not a torch.nn.Module",
        "zoo.birds.fail": "zoo.birds.fail failed with {}: LookupError: no such",
        "zoo.birds.__name__": "zoo.birds.__name__ failed with {}: TypeError: 'str' object is not callable",
        "zoo/birds.build": "model_parameters.name: 'zoo/birds.build', but a custom source needs a dotted path",
    }
    for path, reason in reasons.items():
        assert reason in refused(path, ["zoo"])


def test_weights_are_a_file_or_random(import_marker: Path, tmp_path: Path) -> None:
    network = nn.Sequential(nn.Linear(2, 3))
    torch.save(network.state_dict(), tmp_path / "w.pth")
    loaded = build("zoo.birds.build", ["zoo"], str(tmp_path / "w.pth"))
    assert weights_digest(loaded) == weights_digest(network)
    # Unlike for a library's network, the file does not set the number of classes of a custom network.
    message = refused("zoo.birds.build", ["zoo"], str(tmp_path / "w.pth"), width=5)
    assert "size mismatch for 0.weight" in message
    assert "weights: 'DEFAULT', but a custom source takes a .safetensors or .pth or .pt file, or null" in refused(
        "zoo.birds.build", ["zoo"], "DEFAULT"
    )

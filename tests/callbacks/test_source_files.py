"""Files of a trained source: the same bytes for the same weights, and registries that several runs add to."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load
from torch import nn

from headstart.callbacks.source_files import add_entry, other_entries, registry_entry, weights_bytes
from headstart.contract.documents import read_registry
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.output.errors import UserError

TOLD = {"seed": "0", "architecture": "a net", "classes": "60", "size": "64"}


def make_network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))


def test_weights_are_half_precision_wherever_it_suffices(tmp_path: Path) -> None:
    network = make_network()
    network.state_dict()["1.running_var"][0] = 1e6
    content = weights_bytes(network, TOLD)
    state = load(content)
    assert {name: tensor.dtype for name, tensor in state.items()} == {
        **dict.fromkeys(("0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean"), torch.float16),
        "1.running_var": torch.float32,
    }
    torch.testing.assert_close(state["0.weight"].float(), network.state_dict()["0.weight"], rtol=1e-3, atol=1e-4)
    (tmp_path / "weights.safetensors").write_bytes(content)
    with safe_open(tmp_path / "weights.safetensors", framework="pt") as file:
        assert file.metadata() == TOLD


def test_the_same_weights_are_the_same_bytes() -> None:
    contents = {weights_bytes(make_network(), dict(reversed(TOLD.items()))) for _ in range(5)}
    assert contents == {weights_bytes(make_network(), TOLD)}


def entry(name: str, **arguments: Any) -> dict[str, Any]:
    spec = NetworkSpec("mobilenet_v2", "torchvision", "mobilenet_v2", arguments={"num_classes": 3, **arguments})
    return registry_entry(name, spec, Preprocessing(32, 32), 1280, "")


def test_entries_are_added_and_replaced(tmp_path: Path) -> None:
    registry = tmp_path / "pool" / "registry.json"
    for name in ("one", "two", "one"):
        add_entry(registry, entry(name), tmp_path / name / "weights.safetensors")
    assert [(each.model_name, each.weights) for each in read_registry(registry).entries.values()] == [
        ("two", "../two/weights.safetensors"),
        ("one", "../one/weights.safetensors"),
    ]
    before = registry.read_bytes()
    with pytest.raises(UserError, match=r"results\.name: 'two' is another model in"):
        other_entries(registry, "two", tmp_path / "other" / "weights.safetensors", overwrite=False)
    assert registry.read_bytes() == before
    add_entry(registry, entry("two"), tmp_path / "other" / "weights.safetensors")
    assert read_registry(registry).entries["two"].weights == "../other/weights.safetensors"


def test_a_list_stays_readable_and_a_damaged_registry_is_kept(tmp_path: Path) -> None:
    registry = tmp_path / "registry.json"
    add_entry(registry, entry("one"), tmp_path / "weights.safetensors")
    registry.write_text(json.dumps(json.loads(registry.read_text())["models"]))
    add_entry(registry, entry("two"), tmp_path / "weights.safetensors")
    assert list(read_registry(registry).entries) == ["one", "two"]
    registry.write_text("{damaged")
    with pytest.raises(UserError):
        add_entry(registry, entry("three"), tmp_path / "weights.safetensors")
    assert registry.read_text() == "{damaged"

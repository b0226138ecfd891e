"""Weights from files load whole or not at all, and what does not fit is said in one line."""

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from safetensors.torch import save_file
from torch import Tensor

from headstart.modules.networks.backbone import Backbone, build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.tests.material.mistakes import unnamed

ARGS = {"width_mult": 0.25}
State = dict[str, Tensor]


def draw_state(classes: int = 1000) -> State:
    torch.manual_seed(classes)
    network = torchvision.models.mobilenet_v2(num_classes=classes, **ARGS)
    for name, buffer in network.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_()  # statistics belong to the weights
    state: State = network.state_dict()
    return state


def load(weights: Path | str, name: str = "mobilenet_v2", args: dict[str, Any] = ARGS) -> Backbone:
    return build_backbone(BackboneSpec(name, str(weights), args).network(seed=0))


WRITERS: dict[str, Callable[[State, Path], Any]] = {
    "weights.safetensors": save_file,
    "weights.pth": torch.save,
    "weights.pt": lambda state, path: torch.save({"state_dict": state, "epoch": 3}, path),
}


def test_local_file_with_a_head_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, classes in zip(WRITERS, [1000, 37, 2], strict=True):
        state = draw_state(classes)
        WRITERS[name](state, tmp_path / name)
        backbone = load(f"~/{name}")
        loaded = backbone.network.state_dict()
        assert set(loaded) == {key for key in state if not key.startswith("classifier.1")}
        assert all(torch.equal(loaded[key], state[key]) for key in loaded)
        assert backbone.source_head is not None
        assert torch.equal(backbone.source_head, state["classifier.1.weight"])
        assert backbone.preprocessing == Preprocessing(256, 224)


class Exploit:
    """An object whose unpickling would run code."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("code from the file was run",)


OBJECTS = "' cannot be read: it is damaged, or holds more than tensors; save a state_dict()"


@pytest.mark.filterwarnings("error")
def test_files_that_do_not_fit_or_cannot_be_read(tmp_path: Path) -> None:
    renamed = draw_state()
    renamed["features.0.0.kernel"] = renamed.pop("features.0.0.weight")
    first = "features.1.conv.0.0.weight"
    saved: list[tuple[Any, str]] = [
        (
            renamed,
            'Missing key(s) in state_dict: "features.0.0.weight". Unexpected key(s) in state_dict: "',
        ),
        ({f"module.{key}": value for key, value in draw_state().items()}, "[...]"),
        ({**draw_state(), first: torch.full_like(draw_state()[first], torch.nan)}, f"not finite, in {first}"),
        (torchvision.models.mobilenet_v2(**ARGS), OBJECTS),
        ({"state_dict": draw_state(), "options": Path("a")}, OBJECTS),
    ]
    stateless: list[Any] = [[1, 2], {"weights": "none"}, {"state_dict": 3}]
    saved += [(content, "holds no state dict") for content in stateless]
    refused = list[tuple[Path, str]]()
    for index, (content, words) in enumerate(saved):
        torch.save(content, tmp_path / f"{index}.pth")
        refused.append((tmp_path / f"{index}.pth", words))
    (tmp_path / "text.safetensors").write_bytes(b"no weights")
    (tmp_path / "code.pth").write_bytes(pickle.dumps(Exploit(), protocol=2))
    refused += [(tmp_path / "text.safetensors", "text.safetensors' cannot be read"), (tmp_path / "code.pth", OBJECTS)]
    assert unnamed((partial(load, path), words) for path, words in refused) == []

    torch.save({"state_dict": draw_state()}, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    load(tmp_path / "old.pth")
    wide = partial(load, tmp_path / "old.pth", args={"width_mult": 1.0})
    assert unnamed([(wide, "size mismatch for features.0.0.weight")]) == []


def test_a_missing_file_is_named() -> None:
    assert unnamed([(partial(load, "absent.safetensors"), "there is no file 'absent.safetensors'")]) == []

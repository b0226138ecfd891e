"""Weights from files load whole or not at all, and unknown names are said in one line."""

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from safetensors.torch import save_file
from torch import Tensor

from headstart.modules.networks.backbone import build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import UserError

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


def spec(path: Path | str) -> BackboneSpec:
    return BackboneSpec("mobilenet_v2", str(path), ARGS)


def refusal(wrong: BackboneSpec) -> str:
    with pytest.raises(UserError) as caught:
        build_backbone(wrong.network(seed=0))
    assert "\n" not in str(caught.value)
    return str(caught.value)


WRITERS: dict[str, Callable[[State, Path], Any]] = {
    "weights.safetensors": save_file,
    "weights.pth": torch.save,
    "weights.pt": lambda state, path: torch.save({"state_dict": state, "epoch": 3}, path),
}


@pytest.mark.parametrize(("name", "classes"), zip(WRITERS, [1000, 37, 2], strict=True))
def test_local_file_with_a_head_of_any_size(tmp_path: Path, name: str, classes: int) -> None:
    state = draw_state(classes)
    WRITERS[name](state, tmp_path / name)
    backbone = build_backbone(spec(tmp_path / name).network(seed=0))
    loaded = backbone.network.state_dict()
    assert set(loaded) == {key for key in state if not key.startswith("classifier.1")}
    assert all(torch.equal(loaded[key], state[key]) for key in loaded)
    assert backbone.source_head is not None
    assert torch.equal(backbone.source_head, state["classifier.1.weight"])
    assert backbone.preprocessing == Preprocessing(256, 224)


def test_file_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    save_file(draw_state(), tmp_path / "weights.safetensors")
    build_backbone(spec("~/weights.safetensors").network(seed=0))


def test_misfitting_keys_are_listed(tmp_path: Path) -> None:
    state = draw_state()
    state["features.0.0.kernel"] = state.pop("features.0.0.weight")
    del state["features.1.conv.1.weight"]
    state["extra.weight"] = torch.zeros(1)
    torch.save(state, tmp_path / "weights.pth")
    message = refusal(spec(tmp_path / "weights.pth"))
    assert "missing keys: features.0.0.weight, features.1.conv.1.weight; " in message
    assert "unexpected keys: extra.weight, features.0.0.kernel" in message


def test_misfitting_shapes_are_listed(tmp_path: Path) -> None:
    torch.save(draw_state(), tmp_path / "weights.pth")
    message = refusal(BackboneSpec("mobilenet_v2", str(tmp_path / "weights.pth"), {"width_mult": 1.0}))
    assert "features.0.0.weight (8, 3, 3, 3) for (32, 3, 3, 3)" in message


def test_long_lists_are_cut(tmp_path: Path) -> None:
    torch.save({f"new.{i}": torch.zeros(1) for i in range(2000)}, tmp_path / "weights.pth")
    message = refusal(spec(tmp_path / "weights.pth"))
    assert "unexpected keys: new.0, new.1, new.2, new.3, new.4 and 1995 more" in message


def test_keys_of_a_parallel_module_are_named(tmp_path: Path) -> None:
    torch.save({f"module.{key}": value for key, value in draw_state().items()}, tmp_path / "weights.pth")
    message = refusal(spec(tmp_path / "weights.pth"))
    assert message.endswith("its keys begin with 'module.': save the state_dict() of DataParallel's module instead")


class Exploit:
    """An object whose unpickling would run code."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("code from the file was run",)


UNREADABLE: dict[str, bytes] = {
    "empty.pth": b"",
    "text.pth": b"no weights",
    "code.pth": pickle.dumps(Exploit(), protocol=2),
    "empty.safetensors": b"",
    "text.safetensors": b"no weights",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(UNREADABLE[name])
    assert f"{name}' cannot be read" in refusal(spec(tmp_path / name))


@pytest.mark.filterwarnings("error")
def test_file_with_objects(tmp_path: Path) -> None:
    network = torchvision.models.mobilenet_v2(**ARGS)
    torch.save(network, tmp_path / "module.pth")
    torch.save({"state_dict": draw_state(), "options": Path("a")}, tmp_path / "options.pth")
    torch.save({"state_dict": draw_state()}, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    (tmp_path / "code.pth").write_bytes(UNREADABLE["code.pth"])
    with warnings.catch_warnings(action="ignore"):
        torch.jit.save(torch.jit.script(torch.nn.ReLU()), tmp_path / "script.pt")
    for name in ("module.pth", "options.pth", "code.pth", "script.pt"):
        message = refusal(spec(tmp_path / name))
        assert message.endswith(f"{name}' cannot be read: it holds more than tensors; save its state_dict() instead")
    build_backbone(spec(tmp_path / "old.pth").network(seed=0))
    (tmp_path / "text.pth").write_bytes(b"no weights")
    assert refusal(spec(tmp_path / "text.pth")).endswith("it is no file of torch.save, or a damaged one")


@pytest.mark.parametrize("content", [[1, 2], {"weights": "none"}, {"state_dict": 3}, {"model": {}}])
def test_file_without_state_dict(tmp_path: Path, content: Any) -> None:
    torch.save(content, tmp_path / "weights.pth")
    assert "holds no state dict" in refusal(spec(tmp_path / "weights.pth"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (spec("absent.safetensors"), "there is no file 'absent.safetensors'"),
        (spec("IMAGENET"), "allowed are IMAGENET1K_V1, IMAGENET1K_V2, DEFAULT, random"),
        (
            BackboneSpec("mobilenet_v22", "random"),
            "no model 'mobilenet_v22'; it has mobilenet_v2",
        ),
        (
            BackboneSpec("timm/test_resnet", "IMAGENET1K_V1"),
            "has no 'IMAGENET1K_V1'; allowed are r160_in1k, DEFAULT, imagenet, random",
        ),
    ],
)
def test_unknown_names(wrong: BackboneSpec, message: str) -> None:
    assert message in refusal(wrong)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    state = draw_state()
    state["features.1.conv.0.0.weight"][0] = torch.nan
    save_file(state, tmp_path / "nan.safetensors")
    assert "not finite, in features.1.conv.0.0.weight" in refusal(spec(tmp_path / "nan.safetensors"))

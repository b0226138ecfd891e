"""Size and accuracy of networks, against what torchvision and a file's metadata say."""

from pathlib import Path

import pytest
import torch
import torchvision
from safetensors.torch import save_file

from headstart.modules.networks.build import count_parameters, known_accuracy
from headstart.modules.networks.spec import NetworkSpec


def write(path: Path, accuracy: str | None) -> Path:
    metadata = None if accuracy is None else {"held_out_accuracy": accuracy}
    save_file({"weight": torch.zeros(2)}, path, metadata)
    return path


def test_parameters_are_those_that_torchvision_documents() -> None:
    documented = torchvision.models.SqueezeNet1_1_Weights.IMAGENET1K_V1.meta["num_params"]
    assert count_parameters(NetworkSpec("squeezenet1_1", "torchvision")) == documented == 1_235_496


def test_accuracy_is_what_torchvision_says_of_weights() -> None:
    for weights in ("IMAGENET1K_V1", "DEFAULT"):
        assert known_accuracy(NetworkSpec("resnet18", "torchvision", weights=weights)) == pytest.approx(0.69758)
    assert known_accuracy(NetworkSpec("resnet18", "torchvision", weights="NO_SUCH")) is None
    assert known_accuracy(NetworkSpec("resnet18", "torchvision")) is None
    assert known_accuracy(NetworkSpec("mobilenetv3_small_050", "timm", weights="DEFAULT")) is None


@pytest.mark.parametrize(("text", "accuracy"), [("0.8125", 0.8125), (None, None), ("high", None), ("nan", None)])
def test_accuracy_is_what_a_file_says_of_itself(tmp_path: Path, text: str | None, accuracy: float | None) -> None:
    path = write(tmp_path / "own.safetensors", text)
    assert known_accuracy(NetworkSpec("own", "torchvision", weights=path)) == accuracy
    assert known_accuracy(NetworkSpec("own", "torchvision", weights=tmp_path / "own.pth")) is None

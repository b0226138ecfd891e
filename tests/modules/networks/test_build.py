"""Registry entries become the networks they name, with the weights they name, and with nothing else."""

from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import torchvision
from safetensors.torch import save_file
from torch import Tensor, nn

from headstart.modules.networks.libraries import LIBRARIES
from headstart.modules.networks.weights import weights_digest
from headstart.output.errors import UserError
from headstart.tests.material.networks import build_network, name_network

SMALL = {"name": "mobilenet_v2", "width_mult": 0.25}
ARGUMENTS = {"torchvision": "name", "timm": "model_name"}


def build(name: str, source: str = "torchvision", weights: str | None = None, **options: Any) -> nn.Module:
    parameters = options.get("parameters", SMALL if source == "torchvision" else {})
    return build_network(name, source, weights, **{**options, "parameters": parameters})


def refusal(name: str, source: str = "torchvision", weights: str | None = None, **options: Any) -> str:
    with pytest.raises(UserError) as caught:
        build(name, source, weights, **options)
    message = str(caught.value)
    assert message.startswith(f"model {name!r}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("source", "key", "argument", "expected"),
    [
        ("torchvision", "resnet50", None, "resnet50"),
        ("torchvision", "resnet50", "resnet18", "resnet18"),
        ("timm", "resnet50.a1_in1k", None, "resnet50.a1_in1k"),
        ("timm", "x", "resnet50", "resnet50"),
    ],
)
def test_model_that_an_entry_means(source: str, key: str, argument: str | None, expected: str) -> None:
    parameters = {} if argument is None else {ARGUMENTS[source]: argument}
    assert LIBRARIES[source].choose(name_network(key, source, parameters=parameters)) == expected


@pytest.mark.parametrize(
    ("source", "key", "argument", "reason"),
    [
        ("torchvision", "xresnet50", None, "model_parameters.name: torchvision has no model 'xresnet50'; it has resn"),
        ("torchvision", "resnet18", 18, "model_parameters.name: torchvision has no model 18; it has nothing alike"),
        ("timm", "x", "resnet50.no_such_tag", "model_parameters.model_name: timm has no model 'resnet50.no_such_tag'"),
    ],
)
def test_entry_that_names_no_model(source: str, key: str, argument: object, reason: str) -> None:
    assert reason in refusal(key, source, parameters={} if argument is None else {ARGUMENTS[source]: argument})


def test_random_weights_depend_on_seed_and_name_alone() -> None:
    state = torch.get_rng_state()
    first = weights_digest(build("a"))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    others = [build("a"), build("b"), build("a", seed=1), build("a", parameters={**SMALL, "width_mult": 0.3})]
    assert [weights_digest(network) == first for network in others] == [True, False, False, False]
    digests = {weights_digest(build(name, "timm", parameters={"model_name": "test_vit"})) for name in "abab"}
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("source", "parameters", "reason"),
    [
        (
            "torchvision",
            {**SMALL, "widthmult": 1},
            "torchvision's mobilenet_v2 cannot be created with {'width_mult': 0",
        ),
        ("timm", {"model_name": "test_vit", "no_such": 1}, "timm's test_vit cannot be created with {'no_such': 1}"),
        ("torchvision", {**SMALL, "weights": "DEFAULT"}, "model_parameters.weights: not allowed"),
        ("timm", {"model_name": "test_vit", "pretrained_cfg": {"file": "a.pth"}}, "pretrained_cfg: not allowed"),
        ("open_clip", {"model_name": "RN50", "pretrained_image_path": "a.pt"}, "pretrained_image_path: not allowed"),
    ],
)
def test_arguments_of_the_constructor(source: str, parameters: dict[str, Any], reason: str) -> None:
    assert reason in refusal("a", source, parameters=parameters)


# Weights from files


def test_convolutional_classifier_of_any_size(tmp_path: Path) -> None:
    network = torchvision.models.squeezenet1_1(num_classes=7)
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    loaded = build("squeezenet1_1", weights=str(tmp_path / "w.safetensors"), parameters={})
    assert weights_digest(loaded) == weights_digest(network)
    network = timm.create_model("test_efficientnet", num_classes=0)
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    parameters = {"num_classes": 0}
    loaded = build("test_efficientnet", "timm", str(tmp_path / "w.safetensors"), parameters=parameters)
    assert weights_digest(loaded) == weights_digest(network)
    message = refusal("test_efficientnet", "timm", str(tmp_path / "w.safetensors"))
    assert "does not fit the model: missing keys: classifier.weight, classifier.bias" in message


# Weights that are downloaded


def test_torchvision_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    network = torchvision.models.squeezenet1_1()
    requests: list[str] = []

    def give(url: str, **_: Any) -> dict[str, Tensor]:
        requests.append(url)
        state: dict[str, Tensor] = network.state_dict()
        return state

    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", give)
    for weights in ("IMAGENET1K_V1", "DEFAULT"):
        assert weights_digest(build("squeezenet1_1", weights=weights, parameters={})) == weights_digest(network)
    assert requests == ["https://download.pytorch.org/models/squeezenet1_1-b8a52dc0.pth"] * 2
    message = refusal("squeezenet1_1", weights="IMAGENET1K_V9", parameters={})
    assert "torchvision's squeezenet1_1 has no 'IMAGENET1K_V9'; allowed are IMAGENET1K_V1, DEFAULT, null" in message


@pytest.mark.parametrize(
    ("name", "weights", "expected"),
    [
        ("test_vit", "r160_in1k", "timm/test_vit.r160_in1k"),
        ("test_vit", "DEFAULT", "timm/test_vit.r160_in1k"),
        ("test_vit", "imagenet", "timm/test_vit.r160_in1k"),
        ("vit_tiny_patch16_224.augreg_in21k", "imagenet", "timm/vit_tiny_patch16_224.augreg_in21k"),
        ("vit_tiny_patch16_224.augreg_in21k", "DEFAULT", "timm/vit_tiny_patch16_224.augreg_in21k"),
    ],
)
def test_timm_weights(monkeypatch: pytest.MonkeyPatch, name: str, weights: str, expected: str) -> None:
    requests: list[str] = []
    classes = 21843 if "in21k" in expected else 1000
    network = timm.create_model(expected.removeprefix("timm/").partition(".")[0], num_classes=classes)

    def give(location: str, *_: Any, **__: Any) -> dict[str, Tensor]:
        requests.append(location)
        state: dict[str, Tensor] = network.state_dict()
        return state

    monkeypatch.setattr("timm.models._builder.load_state_dict_from_hf", give)
    assert weights_digest(build(name, "timm", weights)) == weights_digest(network)
    assert requests == [expected]


def test_imagenet_is_no_weights_where_several_may_be_meant() -> None:
    message = refusal("vit_tiny_patch16_224", "timm", "imagenet")
    assert "has no 'imagenet'; allowed are augreg_in21k, augreg_in21k_ft_in1k, DEFAULT, null" in message
    message = refusal("squeezenet1_1", weights="imagenet", parameters={})
    assert "has no 'imagenet'; allowed are IMAGENET1K_V1, DEFAULT, null" in message


def test_failed_download_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no route\nto host")

    monkeypatch.setattr("timm.models._hub.hf_hub_download", fail)
    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", fail)
    for source, name, weights in [("timm", "test_vit", "r160_in1k"), ("torchvision", "resnet18", "DEFAULT")]:
        message = refusal(name, source, weights, parameters={})
        assert f"weights: '{weights}' of {source}'s {name} could not be downloaded or loaded (no route)" in message
        assert "check the connection, or name a local .safetensors or .pth file" in message

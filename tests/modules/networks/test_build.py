"""Registry entries become the networks they name, with the weights they name, and with nothing else."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import torchvision
from safetensors.torch import save_file
from torch import Tensor, nn

from headstart.modules.networks.build import count_parameters, known_accuracy
from headstart.modules.networks.libraries import LIBRARIES
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.weights import weights_digest
from headstart.tests.material.mistakes import refusal
from headstart.tests.material.networks import build_network, name_network

SMALL = {"name": "mobilenet_v2", "width_mult": 0.25}
ARGUMENTS = {"torchvision": "name", "timm": "model_name"}


def build(name: str, source: str = "torchvision", weights: str | None = None, **options: Any) -> nn.Module:
    parameters = options.get("parameters", SMALL if source == "torchvision" else {})
    return build_network(name, source, weights, **{**options, "parameters": parameters})


def refused(name: str, source: str = "torchvision", weights: str | None = None, **options: Any) -> str:
    message = refusal(partial(build, name, source, weights, **options))
    assert message.startswith(f"model {name!r}: ")
    return message


@pytest.mark.parametrize(
    ("source", "key", "given", "expected"),
    [
        ("torchvision", "resnet50", None, "resnet50"),
        ("torchvision", "resnet50", "resnet18", "resnet18"),
        ("torchvision", "mobilenet_v2_inat_birds", None, "mobilenet_v2"),
        ("torchvision", "my wide_resnet50_2", None, "wide_resnet50_2"),
        ("torchvision", "vit_b_16/swag.v1", None, "vit_b_16"),
        ("torchvision", "vgg16_bn_birds", None, "vgg16_bn"),
        ("timm", "timm_resnet18_random", None, "resnet18"),
        ("timm", "timm/resnet50.a1_in1k", None, "resnet50.a1_in1k"),
        ("timm", "x", "resnet50.a1_in1k", "resnet50.a1_in1k"),
    ],
)
def test_model_that_an_entry_means(source: str, key: str, given: str | None, expected: str) -> None:
    parameters = {} if given is None else {ARGUMENTS[source]: given}
    assert LIBRARIES[source].choose(name_network(key, source, parameters=parameters)) == expected


# Names that do not name one model, and what is said of them.
UNCLEAR = {
    "xresnet50": "contains resnet50 of torchvision's models, and none of them alone between",
    "resnet500": "none of them alone between separators; name the right one in model_parameters.name",
    "fcn_resnet-50": "contains no name of torchvision's models; name the right one in",
    "resnet18_resnet50": "contains resnet50 and resnet18 of torchvision's models",
    "wide_resnet50_2 of resnet50": "contains wide_resnet50_2 and resnet50 of",
    "resnet50_xresnet50": "contains resnet50 of",
}
UNCLEAR_TO_TIMM = {
    "resnet50 vs vit_base_patch16_224": "and none of them alone between separators",
    "birds": "name the right one in model_parameters.model_name",
}
UNKNOWN = [
    ("torchvision", "resnet17", "model_parameters.name: torchvision has no model 'resnet17'; it has"),
    ("torchvision", 18, "torchvision has no model 18"),
    ("timm", "resnet50.no_such_tag", "timm has no model 'resnet50.no_such_tag'; it has resnet50"),
]


def test_entry_that_names_no_one_model() -> None:
    for source, names in (("torchvision", UNCLEAR), ("timm", UNCLEAR_TO_TIMM)):
        for name, words in names.items():
            assert words in refused(name, source, parameters={})
    for source, given, words in UNKNOWN:
        assert words in refused("resnet18", source, parameters={ARGUMENTS[source]: given})


def test_random_weights_depend_on_seed_and_name_alone() -> None:
    state = torch.get_rng_state()
    first = weights_digest(build("a"))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    others = [build("a"), build("b"), build("a", seed=1), build("a", parameters={**SMALL, "width_mult": 0.3})]
    assert [weights_digest(network) == first for network in others] == [True, False, False, False]


# Arguments of the constructor, and what is said of them.
ARGUMENTS_REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("torchvision", {**SMALL, "widthmult": 1}, "torchvision's mobilenet_v2 cannot be created with {'width_mult': 0"),
    ("torchvision", {**SMALL, "weights": "DEFAULT"}, "model_parameters.weights: not allowed"),
    ("timm", {"model_name": "test_vit", "checkpoint_path": "a.pth"}, "model_parameters.checkpoint_path: not all"),
    ("timm", {"model_name": "test_vit", "pretrained_cfg": {"file": "a.pth"}}, "pretrained_cfg: not allowed"),
    ("open_clip", {"model_name": "RN50", "pretrained_image_path": "a.pt"}, "pretrained_image_path: not allowed"),
]


def test_arguments_of_the_constructor() -> None:
    for source, parameters, words in ARGUMENTS_REFUSED:
        assert words in refused("a", source, parameters=parameters)


# Weights from files


def test_weights_in_half_precision_become_single(tmp_path: Path) -> None:
    state = torchvision.models.mobilenet_v2(width_mult=0.25).half().state_dict()
    save_file(state, tmp_path / "w.safetensors")
    loaded = build("a", weights=str(tmp_path / "w.safetensors")).state_dict()
    assert {value.dtype for value in loaded.values() if value.is_floating_point()} == {torch.float32}
    assert all(torch.equal(loaded[name], state[name].to(loaded[name].dtype)) for name in state)


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
    message = refused("test_efficientnet", "timm", str(tmp_path / "w.safetensors"))
    assert 'Missing key(s) in state_dict: "classifier.weight", "classifier.bias"' in message


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
    message = refused("squeezenet1_1", weights="IMAGENET1K_V9", parameters={})
    assert "torchvision's squeezenet1_1 has no 'IMAGENET1K_V9'; allowed are IMAGENET1K_V1, DEFAULT, null" in message


@pytest.mark.parametrize(
    ("name", "weights", "expected"),
    [
        ("test_vit", "r160_in1k", "timm/test_vit.r160_in1k"),
        ("test_vit", "DEFAULT", "timm/test_vit.r160_in1k"),
        ("test_vit", "imagenet", "timm/test_vit.r160_in1k"),
        ("vit_tiny_patch16_224.augreg_in21k", "imagenet", "timm/vit_tiny_patch16_224.augreg_in21k"),
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


def test_a_tag_that_timm_does_not_have() -> None:
    assert "timm's test_vit has no weights 'other'; it has r160_in1k" in refused("test_vit.other", "timm", "imagenet")


def test_imagenet_is_no_name_where_several_weights_may_be_meant() -> None:
    message = refused("vit_tiny_patch16_224", "timm", "imagenet")
    assert "has no 'imagenet'; allowed are augreg_in21k, augreg_in21k_ft_in1k, DEFAULT, null" in message


def test_failed_download_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no route\nto host")

    monkeypatch.setattr("timm.models._hub.hf_hub_download", fail)
    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", fail)
    for source, name, weights in [("timm", "test_vit", "r160_in1k"), ("torchvision", "resnet18", "DEFAULT")]:
        message = refused(name, source, weights, parameters={})
        assert f"weights: '{weights}' of {source}'s {name} could not be downloaded or loaded (no route)" in message


def test_parameters_are_those_that_torchvision_documents() -> None:
    documented = torchvision.models.SqueezeNet1_1_Weights.IMAGENET1K_V1.meta["num_params"]
    assert count_parameters(NetworkSpec("squeezenet1_1", "torchvision")) == documented == 1_235_496


def test_accuracy_is_what_torchvision_says_of_weights() -> None:
    for weights in ("IMAGENET1K_V1", "DEFAULT"):
        assert known_accuracy(NetworkSpec("resnet18", "torchvision", weights=weights)) == pytest.approx(0.69758)
    assert known_accuracy(NetworkSpec("resnet18", "torchvision", weights="NO_SUCH")) is None
    assert known_accuracy(NetworkSpec("resnet18", "torchvision")) is None
    assert known_accuracy(NetworkSpec("mobilenetv3_small_050", "timm", weights="DEFAULT")) is None


def test_accuracy_is_what_a_file_says_of_itself(tmp_path: Path) -> None:
    for text, accuracy in (("0.8125", 0.8125), (None, None), ("high", None), ("nan", None)):
        path = tmp_path / f"{text}.safetensors"
        save_file({"weight": torch.zeros(2)}, path, None if text is None else {"held_out_accuracy": text})
        assert known_accuracy(NetworkSpec("own", "torchvision", weights=path)) == accuracy
    assert known_accuracy(NetworkSpec("own", "torchvision", weights=tmp_path / "own.pth")) is None

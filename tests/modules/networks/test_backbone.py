"""Backbones are networks without their head, in evaluation mode; classifiers are networks with a new head."""

from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from torch import Tensor, nn
from torchvision.models import mobilenet_v2, resnet18

from headstart.modules.networks.backbone import Backbone, build_backbone, build_classifier
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.normalization import Normalization
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.tests.material.mistakes import refusal
from headstart.tests.material.networks import random_photos

SMALL = Preprocessing(resize=32, crop=32)
TINY = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, SMALL)


@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet18", "alexnet"])
def test_features_are_the_input_of_the_last_linear_layer(name: str) -> None:
    backbone = build_backbone(BackboneSpec(name, "random", preprocessing=Preprocessing(64, 64)).network(seed=3))
    torch.manual_seed(3)
    network = torchvision.models.get_model(name, weights=None).eval()
    head = [module for module in network.modules() if isinstance(module, nn.Linear)][-1]
    seen: list[Tensor] = []
    head.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    photos = random_photos(side=64)
    with torch.no_grad():
        network(Normalization(SMALL)(photos))
        features = backbone(photos)
    torch.testing.assert_close(features, seen[0], rtol=1e-4, atol=1e-5)
    assert features.shape == (3, backbone.width) == (3, head.in_features)


TWO_HEADS: dict[str, dict[str, Any]] = {
    "deit_tiny_distilled_patch16_224": {"depth": 1},
    "crossvit_tiny_240": {},
    "dla46_c": {},  # a convolution
}


@pytest.mark.parametrize("name", TWO_HEADS)
def test_timm_model_with_several_heads(name: str) -> None:
    import timm

    spec = BackboneSpec(f"timm/{name}", "random", TWO_HEADS[name]).network(seed=4)
    backbone = build_backbone(spec)
    backbone.try_out(spec)
    torch.manual_seed(4)
    network = timm.create_model(name, **TWO_HEADS[name]).eval()
    photos = random_photos(2, backbone.preprocessing.crop)
    with torch.no_grad():
        images = Normalization(backbone.preprocessing)(photos)
        expected = network.forward_head(network.forward_features(images), pre_logits=True)
        for each in (backbone, deepcopy(backbone), backbone.folded()):
            torch.testing.assert_close(each(photos), expected, rtol=1e-3, atol=1e-4)
    assert backbone.source_head is None


def test_features_that_are_wider_than_the_maps() -> None:
    spec = BackboneSpec("timm/mobilenetv3_small_050", "random", {"num_classes": 0}, SMALL).network(seed=0)
    backbone = build_backbone(spec)
    backbone.try_out(spec)
    assert backbone.width == 1024 != backbone.network.num_features


def test_embedded_weights() -> None:
    backbone, other = (build_backbone(BackboneSpec("mobilenet_v2", "embedded").network(seed)) for seed in (0, 1))
    assert backbone.digest() == other.digest()
    assert (backbone.preprocessing.resize, backbone.preprocessing.crop) == (64, 64)
    assert backbone.source_head is not None
    assert backbone.source_head.shape[1] == backbone.width


def test_digest_is_that_of_the_content() -> None:
    backbone = build_backbone(TINY.network(seed=0))
    before = backbone.digest()
    backbone.network.to(memory_format=torch.contiguous_format)
    backbone(random_photos())
    assert backbone.digest() == before
    backbone.network.state_dict()["features.18.1.running_var"][-1] += 1e-3
    assert backbone.digest() != before


def draw_statistics(backbone: Backbone) -> None:
    """Sample statistics and weights for every batch norm; fresh ones would change nothing."""
    generator = torch.Generator().manual_seed(0)
    for module in backbone.modules():
        if isinstance(module, nn.BatchNorm2d):
            for value, low in ((module.running_mean, -0.2), (module.running_var, 0.5), (module.weight, 0.5)):
                assert value is not None
                value.detach().uniform_(low, low + 1, generator=generator)


@pytest.mark.parametrize(
    "name", ["mobilenet_v2", "resnet18", "shufflenet_v2_x0_5", "timm/test_resnet", "timm/test_vit"]
)
def test_folded_backbone_gives_the_same_features(name: str) -> None:
    preparation = Preprocessing(160, 160) if name.startswith("timm/") else Preprocessing(64, 64)
    backbone = build_backbone(BackboneSpec(name, "random", preprocessing=preparation).network(0))
    draw_statistics(backbone)
    photos, digest = random_photos(4, preparation.crop), backbone.digest()
    folded = backbone.folded()
    with torch.no_grad():
        expected, features = backbone(photos), folded(photos)
    torch.testing.assert_close(features, expected, rtol=1e-3, atol=1e-4 * expected.abs().max().item())
    assert backbone.digest() == digest
    assert not any(module.training for module in folded.modules())
    if name in {"mobilenet_v2", "resnet18"}:
        assert not any(isinstance(module, nn.BatchNorm2d) for module in folded.modules())


def test_evaluation_mode_whichever_is_asked_for() -> None:
    backbone = build_backbone(TINY.network(seed=0))
    parent = nn.ModuleList([backbone]).train()
    assert parent.training
    assert not any(module.training for module in backbone.modules())
    with torch.no_grad():
        together, alone = backbone(random_photos(4)), [backbone(photo[None]) for photo in random_photos(4)]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-4, atol=1e-5)


def test_a_folded_backbone_lies_where_the_network_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headstart.modules.networks.backbone.are_same", lambda *features: True)
    backbone = build_backbone(BackboneSpec(weights="random", preprocessing=Preprocessing(32, 32)).network(0)).to("meta")
    folded = backbone.folded()
    assert {tensor.device.type for tensor in (*folded.parameters(), *folded.buffers())} == {"meta"}
    assert folded(backbone.noise_photo()).device.type == "meta"


def test_a_random_network_is_the_librarys_own() -> None:
    options = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, SMALL)
    spec, network, preprocessing, width = build_classifier(options.network(seed=5), classes=4)
    torch.manual_seed(5)
    plain = mobilenet_v2(width_mult=0.25, num_classes=4)
    for name, value in plain.state_dict().items():
        assert torch.equal(network.state_dict()[name], value), name
    assert (spec.arguments, preprocessing, width) == ({"width_mult": 0.25, "num_classes": 4}, SMALL, 1280)


def test_weights_stay_and_their_classifier_goes(tmp_path: Path) -> None:
    torch.manual_seed(1)
    trained = resnet18(num_classes=7)
    torch.save(trained.state_dict(), tmp_path / "weights.pth")
    options = BackboneSpec("resnet18", str(tmp_path / "weights.pth"), {}, SMALL)
    spec, network, _, width = build_classifier(options.network(seed=5), classes=7)
    state = network.state_dict()
    assert all(torch.equal(state[name], value) for name, value in trained.state_dict().items() if "fc" not in name)
    assert state["fc.weight"].shape == (7, width)
    assert not torch.equal(state["fc.weight"], trained.fc.weight)
    _, again, _, _ = build_classifier(options.network(seed=5), classes=7)
    assert torch.equal(again.state_dict()["fc.weight"], state["fc.weight"])
    assert spec.arguments == {"num_classes": 7}


def test_networks_that_cannot_be_trained_are_refused() -> None:
    refused = {"squeezenet1_0": "name: SqueezeNet has no linear classifier", "alexnet": "preprocessing: alexnet cannot"}
    for name, words in refused.items():
        spec = BackboneSpec(name, "random", {}, SMALL).network(0)
        assert words in refusal(partial(build_classifier, spec, 3))

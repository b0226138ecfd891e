"""Classifiers of pixels: against their definition, and with weights of networks that classify photos."""

from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models import mobilenet_v2, resnet18, vit_b_16

from headstart.modules.networks.backbone import build_backbone, build_classifier
from headstart.modules.networks.build import build
from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.pixel_classifier import PixelClassifier, find_maps
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.taps import PIXELS, Tap
from headstart.output.errors import UserError
from headstart.tests.material.networks import name_network

SIDE = 32


@pytest.fixture
def images() -> Tensor:
    return torch.randn(2, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))


def stages(network: nn.Module, images: Tensor) -> list[Tensor]:
    """Return the outputs of ResNet's four stages."""
    at = network.maxpool(network.relu(network.bn1(network.conv1(images))))  # type: ignore[operator]
    outputs = []
    for stage in (network.layer1, network.layer2, network.layer3, network.layer4):
        at = stage(at)  # type: ignore[operator]
        outputs.append(at)
    return outputs


def test_stages_side_by_side_under_a_linear_classifier(images: Tensor) -> None:
    plain = resnet18().eval()
    network = PixelClassifier(plain, SIDE, 5).eval()
    with torch.no_grad():
        maps = [functional.interpolate(each, (8, 8), mode="bilinear") for each in stages(plain, images)]
        features = torch.cat(maps, 1)
        weight, bias = network.classifier.weight, network.classifier.bias
        expected = torch.einsum("nfhw,cf->nhwc", features, weight) + bias
        torch.testing.assert_close(network(images), expected)
    assert features.shape[1] == network.classifier.in_features == 64 + 128 + 256 + 512
    # Modules behind the maps are removed.
    assert not [name for name, _ in network.named_parameters() if "fc" in name]


def test_maps_of_a_network_of_blocks() -> None:
    maps = find_maps(mobilenet_v2(width_mult=0.25).eval(), 64)
    assert maps == [("features.3", 4, 8), ("features.6", 8, 8), ("features.13", 16, 24), ("features", 32, 1280)]


def test_the_last_map_of_a_network_with_a_final_norm_is_behind_the_norm() -> None:
    plain = timm.create_model("starnet_s050").eval()
    images = torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        # timm's own maps are those of the stages; it applies the norm to the last of them where it is asked to.
        final, stages = plain.forward_intermediates(images, norm=False)
        maps = list(PixelClassifier(plain, 64, 2).eval().body(images).values())
        for actual, expected in zip(maps, [*stages[:3], final], strict=True):
            torch.testing.assert_close(actual, expected)
        assert not torch.equal(maps[3], stages[3])
        torch.testing.assert_close(maps[3], plain.norm(stages[3]))


def test_a_network_without_maps_is_refused() -> None:
    with pytest.raises(UserError, match="square feature maps of stride 4, 8, 16, 32"):
        PixelClassifier(vit_b_16(image_size=SIDE).eval(), SIDE, 2)


def test_weights_of_a_classifier_of_photos_stay(tmp_path: Path, images: Tensor) -> None:
    torch.manual_seed(1)
    plain = resnet18(num_classes=4).eval()
    save_file(plain.state_dict(), tmp_path / "weights.safetensors")
    spec = name_network("resnet18", weights=str(tmp_path / "weights.safetensors"), layer=PIXELS)
    network, preprocessing = build(spec)
    assert isinstance(network, PixelClassifier)
    assert preprocessing == Preprocessing(SIDE, SIDE, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    with torch.no_grad():
        for actual, expected in zip(network.body(images).values(), stages(plain, images), strict=True):
            torch.testing.assert_close(actual, expected)
    # The classifier was not trained, and is no source's head.
    assert build_backbone(spec).source_head is None


def test_weights_of_the_whole_with_their_number_of_classes(tmp_path: Path, images: Tensor) -> None:
    torch.manual_seed(2)
    trained = PixelClassifier(resnet18().eval(), SIDE, 6).eval()
    save_file({name: value.half() for name, value in trained.state_dict().items()}, tmp_path / "weights.safetensors")
    spec = name_network("resnet18", weights=str(tmp_path / "weights.safetensors"), layer=PIXELS)
    network, _ = build(spec)
    with torch.no_grad():
        torch.testing.assert_close(network(images), trained(images), atol=0.02, rtol=0.02)
    backbone = build_backbone(spec)
    backbone.try_out(spec)
    assert backbone.source_head is not None
    assert backbone.source_head.shape == (6, backbone.width)
    photos = torch.randint(256, (2, 3, SIDE, SIDE), dtype=torch.uint8)
    with torch.no_grad():
        features = backbone(photos)
        assert features.shape == (2, 8, 8, 960)
        torch.testing.assert_close(backbone.folded()(photos), features, atol=1e-4, rtol=1e-4)
    _, another, _, width = build_classifier(spec, 3)
    assert isinstance(another, PixelClassifier)
    assert (another.classifier.out_features, width) == (3, 960)
    pooled = LayerEmbedding("whole", network, [Tap(PIXELS, "pool", 960)], backbone.preprocessing)(photos)
    torch.testing.assert_close(pooled, features.mean((1, 2)), atol=1e-4, rtol=1e-4)

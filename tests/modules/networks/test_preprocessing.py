"""Preparation against the transforms of torchvision and timm."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torchvision.models import MobileNet_V2_Weights, ResNet50_Weights, ViT_B_16_Weights
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as transforms

from headstart.modules.networks.normalization import Normalization
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import UserError
from headstart.tests.material.prepared_pictures import stack


def draw_photo(size: tuple[int, int]) -> Image.Image:
    pixels = np.random.default_rng(size).integers(0, 256, (size[1], size[0], 3)).astype(np.uint8)
    return Image.fromarray(pixels)


def prepare(preparation: Preprocessing, photo: Image.Image) -> Tensor:
    normal: Tensor = Normalization(preparation)(stack([preparation.prepare(photo)]))
    return normal[0]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (MobileNet_V2_Weights.IMAGENET1K_V1, (256, 224)),
        (MobileNet_V2_Weights.IMAGENET1K_V2, (232, 224)),
        (ResNet50_Weights.IMAGENET1K_V2, (232, 224)),
        (ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1, (384, 384)),
    ],
)
def test_preset_of_torchvisions_weights(entry: Any, expected: tuple[int, int]) -> None:
    preset = entry.transforms()
    preparation = Preprocessing.from_torchvision(preset)
    assert (preparation.resize, preparation.crop) == expected
    photo = draw_photo((500, 410))
    assert torch.equal(prepare(preparation, photo), preset(photo))


@pytest.mark.parametrize(
    ("model", "size"), [("vit_tiny_patch16_224.augreg_in21k_ft_in1k", (640, 480)), ("resnet18.tv_in1k", (33, 257))]
)
def test_pixels_equal_timms(model: str, size: tuple[int, int]) -> None:
    from timm.data import create_transform, resolve_data_config
    from timm.models import get_pretrained_cfg

    config = resolve_data_config(pretrained_cfg=get_pretrained_cfg(model).to_dict())
    transform: Callable[[Image.Image], Tensor] = create_transform(**config, is_training=False)
    photo = draw_photo(size)
    preparation = Preprocessing.from_timm(config)
    assert preparation is not None
    torch.testing.assert_close(prepare(preparation, photo), transform(photo), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "change", [{"input_size": (3, 224, 192)}, {"crop_mode": "squash"}, {"interpolation": "lanczos"}]
)
def test_other_preparation_of_timm_is_refused(change: dict[str, Any]) -> None:
    config = {"input_size": (3, 224, 224), "crop_mode": "center", "interpolation": "bicubic", "crop_pct": 0.9}
    config |= {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
    preparation = Preprocessing.from_timm(config)
    assert preparation is not None
    assert preparation.resize == 248
    assert Preprocessing.from_timm({**config, **change}) is None


@pytest.mark.parametrize("sizes", [(32, 48), (32, 0)])
def test_sizes_that_make_no_picture_are_refused(sizes: tuple[int, int]) -> None:
    with pytest.raises(UserError, match=f"^crop: {sizes[1]} is given; .* at most resize, {sizes[0]}$"):
        Preprocessing(*sizes).check()


def test_normalisation_leaves_the_bytes_alone() -> None:
    photos = torch.full((2, 3, 4, 4), 200, dtype=torch.uint8)
    normal = Normalization(Preprocessing(mean=(0.1, 0.2, 0.3), std=(1, 0.5, 0.25)))(photos)
    assert (photos == 200).all()
    expected = [(200 / 255 - 0.1) / 1, (200 / 255 - 0.2) / 0.5, (200 / 255 - 0.3) / 0.25]
    assert normal[1, :, 2, 3].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "nearest"])
def test_random_sizes_equal_torchvisions(interpolation: Literal["bilinear", "bicubic", "nearest"]) -> None:
    generator = np.random.default_rng(0)
    for width, height, first, second in generator.integers(1, 130, (100, 4)).tolist():
        resize, crop = max(first, second), min(first, second)
        photo = draw_photo((width, height))
        resized = transforms.resize(photo, [resize], InterpolationMode(interpolation))
        expected = transforms.pil_to_tensor(transforms.center_crop(resized, [crop])).permute(1, 2, 0).numpy()
        pixels = Preprocessing(resize, crop, interpolation=interpolation).prepare(photo)
        np.testing.assert_array_equal(pixels, expected)

"""Preparation against the transforms of torchvision and timm."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torchvision.models import MobileNet_V2_Weights, ViT_B_16_Weights
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


def test_preset_of_torchvisions_weights() -> None:
    photo = draw_photo((500, 410))
    for entry in (MobileNet_V2_Weights.IMAGENET1K_V2, ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1):
        preset = entry.transforms()
        assert torch.equal(prepare(Preprocessing.from_torchvision(preset), photo), preset(photo))


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


def test_other_preparation_of_timm_is_refused() -> None:
    config = {"input_size": (3, 224, 224), "crop_mode": "center", "interpolation": "bicubic", "crop_pct": 0.9}
    config |= {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
    preparation = Preprocessing.from_timm(config)
    assert preparation is not None
    assert preparation.resize == 248
    changes: list[dict[str, Any]] = [{"input_size": (3, 224, 192)}, {"crop_mode": "squash"}]
    for change in [*changes, {"interpolation": "lanczos"}]:
        assert Preprocessing.from_timm({**config, **change}) is None


def test_sizes_that_make_no_picture_are_refused() -> None:
    for crop in (48, 0):
        with pytest.raises(UserError, match=f"^crop: {crop} is given; .* at most resize, 32$"):
            Preprocessing(32, crop).check()


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

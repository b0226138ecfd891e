"""Augmentation against NumPy's own padding, and what it may not depend on."""

import numpy as np
import pytest
import torch
from torch import Tensor

from headstart.modules.augmentation import MirrorHalf, Shift


@pytest.fixture
def photos() -> Tensor:
    return torch.randint(256, (5, 3, 9, 7), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


def test_shift_is_a_crop_of_the_reflected_batch(photos: Tensor) -> None:
    padded = np.pad(photos.numpy(), ((0, 0), (0, 0), (3, 3), (3, 3)), mode="reflect")
    shifts = set()
    for seed in range(100):
        torch.manual_seed(seed)
        shifted = Shift(3)(photos).numpy()
        fits = [
            (y, x) for y in range(7) for x in range(7) if np.array_equal(padded[:, :, y : y + 9, x : x + 7], shifted)
        ]
        assert len(fits) == 1
        shifts.update(fits)
    assert len(shifts) > 30


def test_a_shift_beyond_the_picture_is_reflected_again(photos: Tensor) -> None:
    padded = np.pad(photos.numpy(), ((0, 0), (0, 0), (40, 40), (40, 40)), mode="reflect")
    for seed in range(20):
        torch.manual_seed(seed)
        y, x = (40 + torch.randint(-40, 41, (2,))).tolist()
        torch.manual_seed(seed)
        np.testing.assert_array_equal(Shift(40)(photos), padded[:, :, y : y + 9, x : x + 7])
    torch.manual_seed(0)
    assert torch.equal(Shift(3)(photos[..., :1, :1]), photos[..., :1, :1])


def test_half_of_the_batch_is_mirrored(photos: Tensor) -> None:
    mirrored = MirrorHalf()(photos)
    np.testing.assert_array_equal(mirrored[:2], photos.numpy()[:2, :, :, ::-1])
    assert torch.equal(mirrored[2:], photos[2:])


def test_pixels_stay_bytes_and_follow_the_seed(photos: Tensor) -> None:
    for augmentation in (Shift(), MirrorHalf()):
        twice = []
        for _ in range(2):
            torch.manual_seed(7)
            twice.append(augmentation(photos))
        assert twice[0].dtype == torch.uint8
        assert torch.equal(*twice)

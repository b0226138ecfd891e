"""Views of photos, which are the same whenever they are asked for."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torchvision.transforms import v2

from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.views import Views
from headstart.modules.networks.preprocessing import Preprocessing

SMALL = Preprocessing(resize=24, crop=20)


def test_other_views_are_drawn_once_and_for_all(photos: Photos) -> None:
    seen = set()
    for seed in (0, 1):
        views, again = Views(photos, 3, seed, SMALL), Views(photos.subset(np.arange(5, 8)), 2, seed, SMALL)
        assert [views.digest(index) for index in range(len(views))] == views.digests()
        assert views.digests()[: len(photos)] == photos.digests()
        for index in range(3):
            other = len(photos) + 5 + index
            assert again.read(3 + index).tobytes() == views.read(other).tobytes()
            assert again.digests()[3 + index] == views.digests()[other]
        before = torch.get_rng_state()
        seen |= {views.read(index).tobytes() for index in range(len(photos), len(views))}
        assert torch.equal(torch.get_rng_state(), before)
    assert len(seen) == 2 * 2 * len(photos)
    assert len(set(views.digests()) | set(Views(photos, 3, 0, SMALL).digests())) == 5 * len(photos)


def test_a_view_is_a_random_resized_crop_of_the_photo_and_its_flip(tmp_path: Path) -> None:
    # Red tells the column, and green the row of a pixel.
    size = 200
    ramp = np.arange(size, dtype=np.uint8)
    pixels = np.stack(np.broadcast_arrays(ramp[None, :], ramp[:, None], np.uint8(0)), 2)
    for split in ("train", "validation"):
        for name in ("a", "b"):
            (tmp_path / split / name).mkdir(parents=True)
            Image.fromarray(pixels).save(tmp_path / split / name / f"{split}.png")
    photos = ClassFolders(str(tmp_path)).train().subset(np.zeros(1, dtype=np.int64))
    count, shares, flipped = 300, list[float](), 0
    views = Views(photos, count, 0, SMALL)
    for index in range(1, count):
        view = views.read(index)
        assert view.size == (24, 24)
        red, green, _ = np.moveaxis(np.asarray(view, dtype=float), 2, 0)
        width, height = (red[:, -1] - red[:, 0]).mean(), (green[-1] - green[0]).mean()
        flipped += width < 0
        assert height > 0
        shares.append(abs(width) * height * (24 / 23) ** 2 / size**2)
        assert 0.6 < abs(width) / height < 1.6
    assert abs(flipped / (count - 1) - 0.5) < 0.1
    low, high = v2.RandomResizedCrop(24).scale
    assert low * 0.8 < min(shares) < 0.15
    assert 0.85 < max(shares) < high * 1.1

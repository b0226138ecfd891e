"""Targets and pixels are sampled with the probabilities that are stated."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from headstart.metrics.transferability.inputs import ClassShare, sample_targets
from headstart.metrics.transferability.pixel_sampling import count_pixels, sample_pixels


def test_half_of_the_classes_are_chosen_each_equally_often() -> None:
    for classes in (3, 10, 397):
        targets = sample_targets(classes, 2000, "half", 0)
        size = max(2, classes // 2)
        assert {len(target) for target in targets} == {size}
        shares = np.bincount(np.concatenate(targets), minlength=classes) / len(targets)
        expected = size / classes
        assert np.abs(shares - expected).max() < 5 * math.sqrt(expected * (1 - expected) / len(targets))


def test_varying_shares_go_from_2_to_100_percent_uniformly() -> None:
    sizes = np.array([len(target) for target in sample_targets(200, 20_000, "varying", 0)])
    assert (sizes.min(), sizes.max()) == (4, 200)
    expected = len(sizes) / 197
    assert np.abs(np.bincount(sizes)[4:] - expected).max() < 5 * math.sqrt(expected)


def test_a_seed_decides_the_pool_and_a_longer_pool_begins_alike() -> None:
    shares: tuple[ClassShare, ...] = ("varying", "half")
    for share in shares:
        long, short, other = (sample_targets(40, n, share, seed) for n, seed in ((30, 1), (10, 1), (30, 2)))
        assert [target.tolist() for target in long[:10]] == [target.tolist() for target in short]
        assert [target.tolist() for target in long] != [target.tolist() for target in other]
    with pytest.raises(ValueError, match=r"it has 2 classes.* 3 or more"):
        sample_targets(2, 10, "half", 0)
    assert all(len(target) == 2 for target in sample_targets(3, 10, "half", 0))


IGNORED = 255
Maps = NDArray[np.int64]


def make_maps(images: int, side: int, shares: list[float], seed: int = 0) -> Maps:
    """Return maps with exactly these shares of pixels of each class, in random positions."""
    counts = [round(share * side * side) for share in shares]
    values = np.repeat(np.arange(len(shares)), counts)
    generator = np.random.default_rng(seed)
    return np.stack([generator.permutation(values).reshape(side, side) for _ in range(images)])


def numbered(maps: Maps) -> NDArray[np.float64]:
    """Return features `[images, 3, h, w]` that hold the pixel's image, row and column."""
    indices = np.indices(maps.shape)
    return indices.transpose(1, 0, 2, 3).astype(np.float64)


def test_classes_of_known_frequency_are_sampled_alike() -> None:
    maps = make_maps(40, 100, [0.9, 0.09, 0.01])
    _, labels = sample_pixels(numbered(maps), maps, per_image=20)
    assert len(labels) == 800
    shares = np.bincount(labels, minlength=3) / len(labels)
    # Five standard deviations of a binomial share; 20 of 10,000 pixels leave no class short, which 100 has at least.
    # Without replacement, the rarest class loses up to the share of its 100 pixels that are taken, 6.7 %.
    bound = 5 * math.sqrt(1 / 3 * 2 / 3 / len(labels))
    assert np.abs(shares - 1 / 3).max() < bound


def test_the_draw_without_replacement_is_successive() -> None:
    maps = np.tile(np.array([[[0, 1, 1, 1]]]), (20_000, 1, 1))
    features, _ = sample_pixels(numbered(maps), maps, per_image=2, counts=np.array([1, 2]))
    # Weights 1, 1/2, 1/2, 1/2: the first pixel is drawn first, or second after one of the three others.
    expected = 1 / 2.5 + 3 * (0.5 / 2.5) * (1 / 2)
    share = (features[:, 2] == 0).sum() / len(maps)
    assert abs(share - expected) < 5 * math.sqrt(expected * (1 - expected) / len(maps))


def test_every_sampled_pixel_is_a_valid_one_of_its_image_and_none_comes_twice() -> None:
    maps = make_maps(5, 20, [0.7, 0.2, 0.1])
    maps[0, 1:] = IGNORED
    maps[1] = IGNORED
    features, labels = sample_pixels(numbered(maps), maps, per_image=150)
    image, row, column = features.T.astype(int)
    np.testing.assert_array_equal(np.bincount(image), [20, 0, 150, 150, 150])
    np.testing.assert_array_equal(maps[image, row, column], labels)
    assert not (labels == IGNORED).any()
    assert len(np.unique(features, axis=0)) == len(features)


def test_a_seed_decides_the_sample_also_batch_by_batch_and_of_tensors() -> None:
    maps = make_maps(6, 20, [0.6, 0.4])
    maps[2, 3:9] = IGNORED
    features, counts = numbered(maps), count_pixels(maps)
    whole, other = (sample_pixels(features, maps, 30, seed=seed) for seed in (7, 8))
    generator = np.random.default_rng(7)
    batches = [
        sample_pixels(features[part], maps[part], 30, seed=generator, counts=counts)
        for part in (slice(0, 2), slice(2, 6))
    ]
    of_tensors = sample_pixels(torch.from_numpy(features), torch.from_numpy(maps).to(torch.uint8), 30, seed=7)
    for index, expected in enumerate(whole):
        np.testing.assert_array_equal(np.concatenate([batch[index] for batch in batches]), expected)
        np.testing.assert_array_equal(of_tensors[index], expected)
    assert not np.array_equal(whole[0], other[0])


def test_label_maps_are_read_at_the_centres_of_feature_pixels() -> None:
    for small, large in ((4, 12), (5, 13), (6, 3)):
        maps = np.random.default_rng(0).integers(0, 5, (2, large, large))
        features = numbered(np.zeros((2, small, small), dtype=np.int64))
        sampled, labels = sample_pixels(features, maps, small * small)
        for (image, row, column), label in zip(sampled.astype(int), labels, strict=True):
            position = [math.floor((i + 0.5) * large / small) for i in (row, column)]
            assert label == maps[image, position[0], position[1]]


def test_pixels_are_counted_over_maps_of_all_sizes_and_kinds() -> None:
    maps = [np.array([[0, 2], [2, IGNORED]], dtype=np.uint8), torch.tensor([[1, 5, 5]]), np.array([[IGNORED]])]
    np.testing.assert_array_equal(count_pixels(maps), [1, 1, 2, 0, 0, 2])
    assert count_pixels([np.array([[IGNORED]])]).tolist() == []


def test_what_does_not_fit_is_named() -> None:
    changes: list[tuple[dict[str, object], str]] = [
        ({"features": np.zeros((2, 3, 4))}, "features must be"),
        ({"labels": np.zeros((3, 4, 4), dtype=int)}, "labels must be \\[2, H, W\\]"),
        ({"labels": np.zeros((2, 4, 4))}, "labels must be integers"),
        ({"labels": np.full((2, 4, 4), IGNORED)}, "labels: every pixel has the ignored label 255"),
        ({"labels": np.full((2, 4, 4), 3), "counts": np.array([1, 1])}, "counts: class 3"),
        ({"per_image": 0}, "per_image must be an integer of 1 or more, not 0"),
    ]
    for change, message in changes:
        arguments = {"features": np.zeros((2, 3, 4, 4)), "labels": np.zeros((2, 4, 4), dtype=int), **change}
        with pytest.raises(ValueError, match=message):
            sample_pixels(**arguments)  # type: ignore[arg-type]

import math

import numpy as np
import pytest

from headstart.metrics.transferability.inputs import ClassShare, sample_targets


@pytest.mark.parametrize("classes", [3, 10, 397])
def test_half_of_the_classes_are_chosen_each_equally_often(classes: int) -> None:
    targets = sample_targets(classes, 2000, "half", 0)
    size = max(2, classes // 2)
    assert {len(chosen) for chosen in targets} == {size}
    shares = np.bincount(np.concatenate(targets), minlength=classes) / len(targets)
    expected = size / classes
    assert np.abs(shares - expected).max() < 5 * math.sqrt(expected * (1 - expected) / len(targets))


def test_varying_shares_go_from_2_to_100_percent_uniformly() -> None:
    sizes = np.array([len(chosen) for chosen in sample_targets(200, 20_000, "varying", 0)])
    assert (sizes.min(), sizes.max()) == (4, 200)
    counts = np.bincount(sizes)[4:]
    expected = len(sizes) / 197
    assert np.abs(counts - expected).max() < 5 * math.sqrt(expected)


@pytest.mark.parametrize("share", ["varying", "half"])
def test_a_seed_decides_the_pool_and_a_longer_pool_begins_alike(share: ClassShare) -> None:
    long, short, other = (sample_targets(40, n, share, seed) for n, seed in ((30, 1), (10, 1), (30, 2)))
    assert [chosen.tolist() for chosen in long[:10]] == [chosen.tolist() for chosen in short]
    assert [chosen.tolist() for chosen in long] != [chosen.tolist() for chosen in other]


def test_two_classes_give_no_pool() -> None:
    with pytest.raises(ValueError, match="it has 2 classes"):
        sample_targets(2, 10, "half", 0)

"""TransRate against determinants of the features' own matrices."""

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.metrics.transferability.trans_rate import trans_rate


def sample(samples: int, features: int, classes: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(0)
    labels = generator.permutation(np.arange(samples) ** 2 % 17 % classes)
    return generator.standard_normal((samples, features)) + generator.standard_normal((classes, features))[
        labels
    ], labels


def rate(rows: NDArray[np.float64], epsilon: float) -> float:
    samples, features = rows.shape
    return float(np.linalg.slogdet(np.eye(features) + rows.T @ rows / (samples * epsilon))[1]) / 2


@pytest.mark.parametrize("epsilon", [1e-4, 0.5])
@pytest.mark.parametrize(("samples", "features", "classes"), [(80, 6, 4), (30, 50, 3), (60, 25, 2)])
def test_as_determinants_of_features(samples: int, features: int, classes: int, epsilon: float) -> None:
    x, labels = sample(samples, features, classes)
    centred = x - x.mean(0)
    expected = rate(centred, epsilon) - np.mean([rate(centred[labels == label], epsilon) for label in range(classes)])
    assert trans_rate(x, labels, epsilon) == pytest.approx(expected, rel=1e-9)


def test_one_feature_in_closed_form() -> None:
    # Classes at -1 and 1: the whole and either class have a second moment of 1 about the common mean.
    labels = np.arange(10) % 2
    assert trans_rate(2.0 * labels[:, None], labels) == pytest.approx(0, abs=1e-12)
    # Along axes of their own, one feature is of use to one class only.
    x = np.eye(2)[labels] * 2
    whole, one = 0.5 * np.log1p(2 / 1e-4), 0.5 * np.log1p(2 / 1e-4)
    assert trans_rate(x, labels) == pytest.approx(whole - one, abs=1e-10)


def test_without_spread_or_without_classes_it_is_0() -> None:
    x, labels = sample(30, 4, 3)
    assert trans_rate(np.full((30, 4), 0.1), labels) == 0
    assert trans_rate(x, np.zeros(30, dtype=int)) == 0
    # A class with one sample has a rate of its own.
    assert np.isfinite(trans_rate(x, np.arange(30)))


def test_huge_features_have_the_limit_of_determinants_of_second_moments() -> None:
    x, labels = sample(80, 6, 4)
    centred = x - x.mean(0)
    parts = [centred[labels == label] for label in range(4)]
    whole, *classes = (np.linalg.slogdet(rows.T @ rows / len(rows))[1] / 2 for rows in (centred, *parts))
    assert trans_rate(1e60 * x, labels) == pytest.approx(whole - np.mean(classes), rel=1e-9)

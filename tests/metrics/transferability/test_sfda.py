"""SFDA against its steps, written out over scikit-learn's discriminants."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import softmax

from headstart.metrics.transferability.sfda import sfda
from headstart.tests.material.discriminants import probabilities, within


def sample(
    samples: int, features: int, classes: int, scale: float = 0.3
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(0)
    labels = generator.permutation(np.arange(samples) ** 2 // (samples + 1) % classes)
    centres = generator.standard_normal((classes, features))
    return scale * (generator.standard_normal((samples, features)) + centres[labels]) + 1, labels


def written_out(x: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    shrinkage = max(np.exp(-5 * np.linalg.eigvalsh(within(x, labels))[-1]), 1e-10)
    own = softmax(probabilities(x, labels, shrinkage), axis=1)[np.arange(len(x)), labels]
    means = [x[labels == label].mean(0) for label in range(labels.max() + 1)]
    mixed = np.stack(
        [
            p * row + (1 - p) * np.mean([mean for other, mean in enumerate(means) if other != label], axis=0)
            for p, row, label in zip(own, x, labels, strict=True)
        ]
    )
    return float(probabilities(mixed, labels, shrinkage)[np.arange(len(x)), labels].mean())


@pytest.mark.parametrize(
    ("samples", "features", "classes", "scale"), [(120, 6, 3, 0.3), (90, 20, 2, 0.3), (30, 50, 4, 0.1)]
)
def test_as_written_out(samples: int, features: int, classes: int, scale: float) -> None:
    x, labels = sample(samples, features, classes, scale)
    expected = written_out(x, labels)
    assert 1 / classes < expected < 1
    assert sfda(x, labels) == pytest.approx(expected, rel=1e-7)


def test_its_ends() -> None:
    x, labels = sample(90, 8, 3)
    shares = np.bincount(labels) / 90
    assert sfda(np.full((90, 4), 0.1), labels) == pytest.approx((shares**2).sum())
    assert sfda(x, np.zeros(90, dtype=int)) == 1
    assert sfda(np.eye(3)[labels] * 100, labels) == pytest.approx(1)

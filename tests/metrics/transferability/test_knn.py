"""kNN against scikit-learn's neighbours, sample by sample, and its ties."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from headstart.metrics.transferability import knn
from headstart.metrics.transferability.knn import knn_accuracy


def sample(samples: int, features: int, classes: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, samples)
    centres = 0.5 * generator.standard_normal((classes, features))
    return generator.standard_normal((samples, features)) + centres[labels] + 0.2, labels


def by_scikit_learn(x: NDArray[np.float64], labels: NDArray[np.int64], neighbours: int) -> float:
    # Asked about what it was fitted to, it leaves each sample out.
    neighbourhoods = NearestNeighbors(n_neighbors=neighbours, metric="cosine", algorithm="brute").fit(x).kneighbors()
    right = 0
    for label, distances, indices in zip(labels, *neighbourhoods, strict=True):
        votes = np.bincount(labels[indices], weights=np.exp((1 - distances) / 0.07))
        right += int(votes.argmax() == label)
    return right / len(x)


@pytest.mark.parametrize("neighbours", [1, 20])
@pytest.mark.parametrize(("samples", "features", "classes"), [(300, 8, 4), (60, 200, 3), (40, 5, 10)])
def test_as_with_scikit_learn(
    samples: int, features: int, classes: int, neighbours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, labels = sample(samples, features, classes)
    expected = by_scikit_learn(x, labels, neighbours)
    assert 0 < expected <= 1
    assert knn_accuracy(x, labels, neighbours) == pytest.approx(expected, abs=1e-12)
    monkeypatch.setattr(knn, "BLOCK", 7 * samples)
    assert knn_accuracy(x, labels, neighbours) == pytest.approx(expected, abs=1e-12)


def test_fewer_samples_than_neighbours_all_vote() -> None:
    x, labels = sample(15, 6, 3)
    assert knn_accuracy(x, labels) == by_scikit_learn(x, labels, 14) == knn_accuracy(x, labels, 1000)
    assert knn_accuracy(np.ones((1, 3)), [0]) == 0


def test_equal_votes_share_the_prediction_whatever_the_classes_are_called() -> None:
    # Each sample sees one of its class and one of the other, both at the same angle.
    x, labels = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]]), np.array([0, 0, 1, 1])
    order = [2, 0, 3, 1]
    assert knn_accuracy(x, labels, 1) == knn_accuracy(x, 1 - labels, 1) == pytest.approx(0.5)
    assert knn_accuracy(x[order], labels[order], 1) == pytest.approx(0.5)


def test_scale_lengths_and_copies() -> None:
    x, labels = sample(80, 6, 3)
    lengths = np.random.default_rng(1).uniform(0.1, 10, (80, 1))
    assert knn_accuracy(lengths * x, labels) == knn_accuracy(x, labels)
    copies = np.concatenate([x, x]), np.concatenate([labels, labels])
    assert knn_accuracy(*copies, neighbours=1) == 1


def test_constant_features_predict_the_largest_class() -> None:
    assert knn_accuracy(np.full((10, 3), 0.1), np.array([0] * 7 + [1] * 3)) == pytest.approx(0.7)
    assert knn_accuracy(np.zeros((10, 3)), np.array([0] * 7 + [1] * 3)) == pytest.approx(0.7)

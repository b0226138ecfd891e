"""LEEP and NCE against loops over their formulas, and identities between them."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import mutual_info_score

from headstart.metrics.transferability.leep import leep, nce


def sample(samples: int, sources: int, targets: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    return generator.dirichlet(np.full(sources, 0.3), samples), generator.integers(0, targets, samples)


def written_out(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Follow the paper's steps one sample and one pair of classes at a time."""
    samples, sources = probabilities.shape
    joint = {(y, z): 0.0 for y in set(labels.tolist()) for z in range(sources)}
    for i in range(samples):
        for z in range(sources):
            joint[labels[i], z] += float(probabilities[i, z]) / samples
    total = 0.0
    for i in range(samples):
        expected = 0.0
        for z in range(sources):
            marginal = sum(joint[y, z] for y in set(labels.tolist()))
            if marginal:
                expected += float(joint[labels[i], z] / marginal * probabilities[i, z])
        total += math.log(expected)
    return total / len(labels)


def entropy(labels: NDArray[np.int64]) -> float:
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(shares * np.log(shares)).sum())


@pytest.mark.parametrize(("samples", "sources", "targets"), [(50, 4, 3), (30, 10, 2), (8, 20, 5), (1, 3, 1)])
def test_leep_as_written_out(samples: int, sources: int, targets: int) -> None:
    probabilities, labels = sample(samples, sources, targets)
    # A source class that is never predicted.
    probabilities = np.hstack([probabilities, np.zeros((samples, 1))])
    score = leep(probabilities, labels)
    assert score == pytest.approx(written_out(probabilities, labels), rel=1e-12, abs=1e-15)
    assert score <= 0


def test_leep_of_certain_predictions_is_nce() -> None:
    generator = np.random.default_rng(0)
    source, target = generator.integers(0, 6, 200), generator.integers(0, 4, 200)
    assert leep(np.eye(6)[source], target) == pytest.approx(nce(source, target), rel=1e-12)


def test_leep_between_its_ends() -> None:
    labels = np.arange(60) % 3
    assert leep(np.eye(3)[labels], labels) == 0
    assert leep(np.full((60, 5), 0.2), labels) == pytest.approx(-math.log(3), rel=1e-12)
    assert leep(sample(60, 5, 3)[0], np.zeros(60, dtype=int)) == 0


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        (np.array([[0.5, 0.5], [0.5, 0.4]]), "row 1 sums to 0.9"),
        (np.array([[0.5, 0.5], [np.nan, 0.4]]), "row 1 sums to nan"),
        (np.array([[0.5, 0.5], [1.5, -0.5]]), "0 or more, not -0.5"),
        (np.zeros((2, 0)), "samples, source classes"),
    ],
)
def test_leep_refuses_what_are_no_probabilities(probabilities: NDArray[np.float64], message: str) -> None:
    with pytest.raises(ValueError, match=f"probabilities must .*{message}"):
        leep(probabilities, np.array([1, 0]))


def test_nce_as_mutual_information_less_the_entropy() -> None:
    generator = np.random.default_rng(0)
    source, target = generator.integers(0, 6, 300), generator.integers(0, 4, 300) * 5
    target[source == 2] = 5
    expected = mutual_info_score(target, source) - entropy(target)
    assert nce(source, target) == pytest.approx(expected, rel=1e-12)


def test_nce_between_its_ends() -> None:
    target = np.arange(60) % 3
    assert nce(np.array([7, 1, 90])[target], target) == 0
    assert nce(np.arange(60), target) == 0
    assert math.copysign(1, nce(target, np.zeros(60, dtype=int))) == 1
    assert nce(np.zeros(60, dtype=int), target) == pytest.approx(-entropy(target), rel=1e-12)


def test_nce_names_the_argument_that_it_refuses() -> None:
    good = np.array([0, 1])
    with pytest.raises(ValueError, match="source_labels must be integers"):
        nce(good / 2, good)
    with pytest.raises(ValueError, match="target_labels must be \\[2\\]"):
        nce(good, np.array([0, 1, 1]))
    with pytest.raises(ValueError, match="source_labels must be \\[samples\\]"):
        nce(np.zeros((2, 2), dtype=int), good)

"""PARC against SciPy's rank correlation of two matrices of distances, written out."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from headstart.metrics.transferability.parc import parc


def sample(samples: int, features: int, classes: int, apart: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, classes, samples)
    centres = apart * generator.standard_normal((classes, features))
    return generator.standard_normal((samples, features)) + centres[labels] + 1, labels


def written_out(x: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    lower = np.tril_indices(len(x), -1)
    indicators = np.eye(labels.max() + 1)[labels]
    distances = [np.asarray(1 - np.corrcoef(each)).round(12)[lower] for each in (x, indicators)]
    return float(spearmanr(*distances).statistic)


@pytest.mark.parametrize(("samples", "features", "classes"), [(60, 5, 2), (80, 30, 4), (30, 100, 10)])
def test_as_with_scipy(samples: int, features: int, classes: int) -> None:
    x, labels = sample(samples, features, classes, 0.5)
    assert parc(x, labels) == pytest.approx(written_out(x, labels), rel=1e-9)


@pytest.mark.parametrize("components", [None, 4])
@pytest.mark.parametrize(("samples", "features", "classes"), [(60, 5, 2), (80, 30, 7)])
def test_the_released_variant_as_the_steps_of_the_program(
    samples: int, features: int, classes: int, components: int | None
) -> None:
    x, labels = sample(samples, features, classes, 0.5)
    x[:, 1] = 0.1  # constant
    rows = x if components is None else PCA(components, svd_solver="full").fit_transform(x)
    lower = np.triu_indices(samples, 1)
    distances = (1 - np.corrcoef(StandardScaler().fit_transform(rows))).round(12)[lower]
    # The errors by which pairs of different classes differ stay as NumPy makes them.
    of_labels = np.asarray(1 - np.corrcoef(np.eye(classes)))[np.ix_(labels, labels)]
    expected = spearmanr(distances, of_labels[lower]).statistic
    assert parc(x, labels, variant="released", components=components) == pytest.approx(expected, rel=1e-9)


def test_components_are_those_of_scikit_learn() -> None:
    x, labels = sample(60, 100, 3, 0.5)
    reduced = PCA(6, svd_solver="full").fit_transform(x)
    assert parc(x, labels, components=6) == pytest.approx(parc(reduced, labels), rel=1e-9)
    low_rank = np.outer(x[:, 0], x[0]) + np.outer(x[:, 1], x[1])
    assert parc(low_rank, labels, components=6) == pytest.approx(parc(low_rank, labels, components=2), rel=1e-9)
    assert parc(np.full((60, 4), 0.1), labels, components=6, variant="released") == 0


def test_more_samples_than_probes_are_drawn_by_the_seed() -> None:
    x, labels = sample(600, 10, 3, 0.5)
    whole, scores = parc(x, labels), [parc(x, labels, probes=200, seed=seed) for seed in range(3)]
    assert len({whole, *scores}) == 4
    assert scores == pytest.approx([whole] * 3, abs=0.05)
    assert parc(x, labels, probes=200, seed=1) == scores[1]


def test_between_its_ends() -> None:
    x, labels = sample(60, 20, 3, 100)
    assert parc(x, labels) > 0.8 > parc(*sample(60, 20, 3, 1)) > parc(*sample(60, 20, 3, 0.2)) > 0
    assert parc(x, np.zeros(60, dtype=int)) == parc(np.full((60, 4), 0.1), labels) == parc(np.zeros((60, 4)), labels)
    assert parc(np.zeros((60, 4)), labels) == parc(x[:, :1], labels) == parc(x[:2], labels[:2]) == 0

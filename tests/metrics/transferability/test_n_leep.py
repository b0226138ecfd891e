"""N-LEEP against scikit-learn's principal components and mixture, with LEEP written out."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from headstart.metrics.transferability.feature_statistics import FeatureStatistics
from headstart.metrics.transferability.gaussian_mixture import k_means
from headstart.metrics.transferability.leep import leep
from headstart.metrics.transferability.left_out import interval
from headstart.metrics.transferability.n_leep import n_leep, prepare_n_leep


def sample(samples: int, features: int, classes: int, apart: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return samples sorted by class, as the metric keeps them, so that both draw the same starting points."""
    generator = np.random.default_rng(0)
    labels = np.sort(np.arange(samples) % classes)
    scale = np.linspace(2, 0.2, features)
    centres = apart * generator.standard_normal((classes, features))
    return (generator.standard_normal((samples, features)) + centres[labels]) * scale, labels


@pytest.mark.parametrize(("samples", "features", "share"), [(240, 12, 0.8), (150, 5, 1.0)])
def test_as_with_scikit_learn(samples: int, features: int, share: float) -> None:
    x, labels = sample(samples, features, 3, 0.6)
    rows = PCA(share if share < 1 else None, svd_solver="full").fit_transform(x)
    expected = []
    for start in np.random.SeedSequence(5).spawn(3):
        # Signs of axes do not matter to distances, from which the clusters are drawn.
        clusters = k_means(rows, 6, start)
        parts = [rows[clusters == k] for k in range(6)]
        ridge = 1e-6 * np.eye(rows.shape[1])
        mixture = GaussianMixture(
            6,
            weights_init=np.array([len(part) for part in parts]) / samples,
            means_init=np.stack([part.mean(0) for part in parts]),
            precisions_init=np.stack([np.linalg.inv(np.cov(part, rowvar=False, ddof=0) + ridge) for part in parts]),
        ).fit(rows)
        expected.append(leep(mixture.predict_proba(rows), labels))
    result = n_leep(x, labels, pca=share, components_per_class=2, fits=3, seed=5)
    assert result == pytest.approx(np.mean(expected), abs=1e-6)


def test_it_is_the_mean_over_fits_of_which_more_begin_with_the_same() -> None:
    statistics = FeatureStatistics(*sample(200, 10, 4, 0.3))
    everything = np.ones(200, dtype=bool)
    few, many = (prepare_n_leep(statistics, fits=fits, seed=2)(everything) for fits in (3, 5))
    assert few.tolist() == many[:3].tolist()
    assert len(set(many)) == 5
    assert n_leep(statistics, fits=5, seed=2) == pytest.approx(many.mean(), rel=1e-12)


@pytest.mark.slow
def test_its_interval_holds_the_mean_over_other_starts() -> None:
    """Photos that are always kept have no spread of their own: the interval is of the starts alone."""
    statistics = FeatureStatistics(*sample(120, 6, 3, 0.5))
    scores = prepare_n_leep(statistics, components_per_class=2, fits=240)(np.ones(120, dtype=bool))
    assert scores.std() > 0.005
    held = 0
    for own in np.split(np.arange(240), 30):
        low, high = interval(scores[own].mean(), np.zeros(10), scores[own])
        held += low <= np.delete(scores, own).mean() <= high
    assert held >= 26


def test_between_its_ends() -> None:
    x, labels = sample(200, 10, 4, 20)
    assert n_leep(x, labels) == pytest.approx(0, abs=1e-6)
    assert n_leep(np.full((200, 10), 0.1), labels) == pytest.approx(-math.log(4), rel=1e-9)
    assert n_leep(x, np.zeros(200, dtype=int)) == 0
    assert n_leep(sample(200, 10, 4, 0)[0], labels) < -0.3

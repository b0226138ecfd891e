"""N-LEEP against scikit-learn's principal components and mixture, with LEEP written out."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from headstart.metrics.transferability.gaussian_mixture import k_means
from headstart.metrics.transferability.leep import leep
from headstart.metrics.transferability.n_leep import n_leep


def sample(samples: int, features: int, classes: int, apart: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return samples sorted by class, as the metric keeps them, so that both draw the same starting points."""
    generator = np.random.default_rng(0)
    labels = np.sort(np.arange(samples) % classes)
    scale = np.linspace(2, 0.2, features)
    centres = apart * generator.standard_normal((classes, features))
    return (generator.standard_normal((samples, features)) + centres[labels]) * scale, labels


@pytest.mark.parametrize(("samples", "features", "share"), [(240, 12, 0.8), (200, 6, 0.5), (150, 5, 1.0)])
def test_as_with_scikit_learn(samples: int, features: int, share: float) -> None:
    x, labels = sample(samples, features, 3, 0.6)
    rows = PCA(share if share < 1 else None, svd_solver="full").fit_transform(x)
    # Signs of axes do not matter to distances, from which the clusters are drawn.
    clusters = k_means(rows, 6, 5)
    parts = [rows[clusters == k] for k in range(6)]
    ridge = 1e-6 * np.eye(rows.shape[1])
    mixture = GaussianMixture(
        6,
        weights_init=np.array([len(part) for part in parts]) / samples,
        means_init=np.stack([part.mean(0) for part in parts]),
        precisions_init=np.stack([np.linalg.inv(np.cov(part, rowvar=False, ddof=0) + ridge) for part in parts]),
    ).fit(rows)
    expected = leep(mixture.predict_proba(rows), labels)
    assert n_leep(x, labels, pca=share, components_per_class=2, seed=5) == pytest.approx(expected, abs=1e-6)


def test_the_seed_decides() -> None:
    x, labels = sample(200, 10, 4, 0.3)
    assert n_leep(x, labels, seed=3) == n_leep(x, labels, seed=3)
    assert len({n_leep(x, labels, seed=seed) for seed in range(4)}) > 1


def test_between_its_ends() -> None:
    x, labels = sample(200, 10, 4, 20)
    assert n_leep(x, labels) == pytest.approx(0, abs=1e-6)
    assert n_leep(np.full((200, 10), 0.1), labels) == pytest.approx(-math.log(4), rel=1e-9)
    assert n_leep(x, np.zeros(200, dtype=int)) == 0
    assert n_leep(sample(200, 10, 4, 0)[0], labels) < -0.3


def test_more_features_than_samples() -> None:
    x, labels = sample(60, 300, 3, 0.5)
    assert -math.log(3) <= n_leep(x, labels) <= 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pca": 0.0}, "pca must be above 0"),
        ({"pca": 1.5}, "pca must be above 0"),
        ({"pca": None}, "pca must be above 0 and at most 1, not None"),
        ({"components_per_class": 0}, "components_per_class must be an integer of 1 or more"),
        ({"components_per_class": 1.5}, "components_per_class must be an integer of 1 or more, not 1.5"),
        ({"seed": -1}, "seed must be an integer of 0 or more, not -1"),
        ({"components_per_class": 11}, "components_per_class: 11 for each of 3 classes .* features have 30 rows"),
    ],
)
def test_options_that_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        n_leep(*sample(30, 4, 3, 1), **options)  # type: ignore[arg-type]

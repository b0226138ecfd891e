"""The CCA family against scikit-learn, SciPy and loops; invariances are tested with the catalogue."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import eigh, subspace_angles
from sklearn.cross_decomposition import CCA
from sklearn.decomposition import PCA

from headstart.metrics.similarity.cca import pairwise_cca, pairwise_pwcca, pairwise_svcca
from headstart.tests.material.embeddings import embeddings

Array = NDArray[np.float64]
SHAPES = pytest.mark.parametrize("shape", [(40, 5, 3), (60, 8, 20), (15, 1, 9), (30, 4, 4)])


def mean_cosine(x: Array, y: Array) -> float:
    """Average the cosines of the angles between what centred columns span, as SciPy finds them."""
    return float(np.cos(subspace_angles(x - x.mean(0), y - y.mean(0))).mean())


@SHAPES
def test_mean_cca_equals_scipy(shape: tuple[int, int, int]) -> None:
    x, y = embeddings(*shape)
    assert pairwise_cca([x, y])[0][0, 1] == pytest.approx(mean_cosine(x, y), abs=1e-10)


def test_mean_cca_equals_scikit_learn() -> None:
    x, y = embeddings(60, 6, 3)
    variates = CCA(n_components=3, tol=1e-10, max_iter=10_000).fit_transform(x, y)
    correlations = [np.corrcoef(a, b)[0, 1] for a, b in zip(*(each.T for each in variates), strict=True)]
    assert pairwise_cca([x, y])[0][0, 1] == pytest.approx(np.mean(correlations), abs=1e-6)


@pytest.mark.parametrize("variance", [0.5, 0.9, 0.99, 1])
@pytest.mark.parametrize("shape", [(60, 8, 20), (90, 120, 30)])
def test_svcca_equals_scikit_learn_and_scipy(shape: tuple[int, int, int], variance: float) -> None:
    pair = [x * np.geomspace(1, 1e-3, x.shape[1]) for x in embeddings(*shape)]
    if variance == 1 and shape[1] > shape[0]:
        with pytest.raises(ValueError, match=r"^embeddings\[0\]: SVCCA is undefined where .* its 90 stimuli"):
            pairwise_svcca(pair, variance)
        return
    # scikit-learn keeps the fewest axes that hold more than the part that is asked for.
    axes = [PCA(variance if variance < 1 else None, svd_solver="full").fit_transform(x) for x in pair]
    assert pairwise_svcca(pair, variance)[0][0, 1] == pytest.approx(mean_cosine(*axes), abs=1e-8)


def by_generalised_eigenvalues(x: Array, y: Array) -> float:
    """Compute PWCCA of x by y as the paper's formula reads, from covariances."""
    x, y = x - x.mean(0), y - y.mean(0)
    between = x.T @ y @ np.linalg.solve(y.T @ y, y.T @ x)
    squares, directions = eigh(between, x.T @ x)
    total = weighted = 0.0
    for square, direction in sorted(zip(squares, directions.T, strict=True), key=lambda each: -each[0])[
        : min(x.shape[1], y.shape[1])
    ]:
        variate = x @ direction
        variate /= math.dist(variate, np.zeros(len(variate)))
        weight = sum(abs(float(variate @ column)) for column in x.T)
        total += weight
        weighted += weight * math.sqrt(square)
    return weighted / total


@SHAPES
def test_pwcca_is_the_mean_of_both_directions(shape: tuple[int, int, int]) -> None:
    x, y = embeddings(*shape)
    one, other = by_generalised_eigenvalues(x, y), by_generalised_eigenvalues(y, x)
    assert pairwise_pwcca([x, y])[0][0, 1] == pytest.approx((one + other) / 2, abs=1e-9)


def test_pwcca_leans_to_what_an_embedding_consists_of() -> None:
    generator = np.random.default_rng(0)
    shared, *noise = (generator.standard_normal((500, 1)) for _ in range(3))
    loud, faint = ([np.hstack([weight * shared, each]) for each in noise] for weight in (100.0, 0.01))
    plain = pairwise_cca(loud)[0][0, 1]
    assert pairwise_cca(faint)[0][0, 1] == pytest.approx(plain)
    assert pairwise_pwcca(faint)[0][0, 1] < 0.1 < plain < 0.9 < pairwise_pwcca(loud)[0][0, 1]


@pytest.mark.parametrize("compute", [pairwise_cca, pairwise_pwcca])
@pytest.mark.parametrize("width", [11, 12, 40])
def test_as_many_directions_as_stimuli_are_refused(compute: Callable[..., tuple[Array, None]], width: int) -> None:
    x, y = np.random.default_rng(0).standard_normal((12, 3)), np.random.default_rng(1).standard_normal((12, width))
    with pytest.raises(ValueError, match=r"^embeddings\[1\]: \w+ is undefined where .* 12 stimuli can have, 11; give"):
        compute([x, y])


def test_axes_of_equal_strength_are_refused_where_they_span_everything() -> None:
    x = np.random.default_rng(0).standard_normal((12, 3))
    with pytest.raises(
        ValueError, match=r"^embeddings\[1\]: SVCCA is undefined where .* 12 stimuli can have, 11; give"
    ):
        pairwise_svcca([x, np.eye(12)])


def test_directions_in_common_whatever_they_are_leave_pwcca_open() -> None:
    first, second, third = embeddings(20, 9, 3, 11)
    pairwise_pwcca([first, second])
    with pytest.raises(ValueError, match=r"^embeddings\[2\]: PWCCA is undefined with embeddings\[0\], .* 11 and 9 dir"):
        pairwise_pwcca([first, second, third])
    assert pairwise_pwcca([first[:, :8], third])[0].shape == (2, 2)


def test_columns_that_repeat_others_do_not_count() -> None:
    x, y = embeddings(12, 4, 3)
    repeated = np.hstack([x, 2 * x, x[:, :3] - x[:, 1:], np.ones((12, 5))])
    assert repeated.shape[1] > len(repeated)
    assert pairwise_cca([repeated, y])[0][0, 1] == pytest.approx(pairwise_cca([x, y])[0][0, 1], abs=1e-10)


@pytest.mark.parametrize("compute", [pairwise_cca, pairwise_pwcca])
def test_rounding_makes_no_direction(compute: Callable[..., tuple[Array, None]]) -> None:
    # A channel that says nothing, but for the last bit of its values in single precision.
    x, y = (each.astype(np.float32) for each in embeddings(40, 4, 3))
    flicker = np.float32(100) + np.float32(2**-17) * np.random.default_rng(0).integers(0, 2, (40, 1)).astype(np.float32)
    assert np.unique(flicker).size == 2
    plain, noisy = (compute([each, y])[0][0, 1] for each in (x, np.hstack([x, flicker])))
    assert noisy == pytest.approx(plain, abs=1e-5)


@pytest.mark.parametrize("variance", [0, -1, 1.01, math.nan])
def test_a_part_of_the_variance_is_asked_for(variance: float) -> None:
    with pytest.raises(ValueError, match=r"^variance: .* above 0 and at most 1"):
        pairwise_svcca(embeddings(20, 3, 4), variance)

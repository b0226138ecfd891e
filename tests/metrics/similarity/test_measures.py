"""Procrustes, CCA, RSA and mutual neighbours against other libraries; invariances are tested with the catalogue."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.linalg import eigh, subspace_angles
from scipy.spatial import procrustes
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from headstart.metrics.similarity import cka
from headstart.metrics.similarity.cca import pairwise_cca, pairwise_pwcca, pairwise_svcca
from headstart.metrics.similarity.mutual_knn import pairwise_mutual_knn
from headstart.metrics.similarity.procrustes import pairwise_procrustes
from headstart.metrics.similarity.rsa import pairwise_rsa_pearson, pairwise_rsa_spearman
from headstart.tests.material.embeddings import embeddings

Array = NDArray[np.float64]


@pytest.mark.parametrize("shape", [(40, 5, 3), (12, 30, 4), (12, 30, 40), (15, 1, 9), (10, 10, 10)])
def test_procrustes_equals_scipy(shape: tuple[int, int, int]) -> None:
    x, y = embeddings(*shape)
    widest = max(shape[1:])
    # SciPy needs as many columns; columns of zeros change nothing.
    _, _, disparity = procrustes(*(np.pad(rows, ((0, 0), (0, widest - rows.shape[1]))) for rows in (x, y)))
    matrix, debiased = pairwise_procrustes([x, y])
    assert debiased is None
    assert 1 - matrix[0, 1] ** 2 == pytest.approx(disparity, abs=1e-12)


SHAPES = pytest.mark.parametrize("shape", [(40, 5, 3), (60, 8, 20), (15, 1, 9), (30, 4, 4)])


def mean_cosine(x: Array, y: Array) -> float:
    """Average the cosines of the angles between what centred columns span, as SciPy finds them."""
    return float(np.cos(subspace_angles(x - x.mean(0), y - y.mean(0))).mean())


@SHAPES
def test_mean_cca_equals_scipy(shape: tuple[int, int, int]) -> None:
    x, y = embeddings(*shape)
    assert pairwise_cca([x, y])[0][0, 1] == pytest.approx(mean_cosine(x, y), abs=1e-10)


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
    for square, direction in sorted(zip(squares, directions.T, strict=True), key=lambda pair: -pair[0])[
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


@pytest.mark.parametrize("compute", [pairwise_cca, pairwise_pwcca])
@pytest.mark.parametrize("width", [11, 12, 40])
def test_as_many_directions_as_stimuli_are_refused(compute: Callable[..., tuple[Array, None]], width: int) -> None:
    x, y = np.random.default_rng(0).standard_normal((12, 3)), np.random.default_rng(1).standard_normal((12, width))
    with pytest.raises(ValueError, match=r"^embeddings\[1\]: \w+ is undefined where .* 12 stimuli can have, 11; give"):
        compute([x, y])
    with pytest.raises(ValueError, match=r"^embeddings\[1\]: SVCCA is undefined where .* 12 stimuli can have, 11"):
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
    x, y = (rows.astype(np.float32) for rows in embeddings(40, 4, 3))
    flicker = np.float32(100) + np.float32(2**-17) * np.random.default_rng(0).integers(0, 2, (40, 1)).astype(np.float32)
    assert np.unique(flicker).size == 2
    plain, noisy = (compute([rows, y])[0][0, 1] for rows in (x, np.hstack([x, flicker])))
    assert noisy == pytest.approx(plain, abs=1e-5)


def test_a_part_of_the_variance_is_needed() -> None:
    for variance in (0, -1, 1.01, math.nan):
        with pytest.raises(ValueError, match=r"^variance: .* above 0 and at most 1"):
            pairwise_svcca(embeddings(20, 3, 4), variance)


@pytest.mark.parametrize(("n", "block_bytes"), [(3, 1), (9, 1), (60, 2**12), (60, 2**28)])
def test_rsa_equals_scipy(n: int, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cka, "BLOCK_BYTES", block_bytes)
    many = embeddings(n, 5, 40, 12)
    dissimilarities = np.stack([pdist(x, "correlation") for x in many])
    np.testing.assert_allclose(pairwise_rsa_pearson(many)[0], np.corrcoef(dissimilarities), atol=1e-11)
    expected = stats.spearmanr(dissimilarities, axis=1).statistic
    np.testing.assert_allclose(pairwise_rsa_spearman(many)[0], expected, atol=1e-12)


def test_rows_that_are_nearly_parallel_keep_their_digits() -> None:
    # All correlations lie within 1e-7 of 1, where the products' own sums would leave few digits of their spread.
    many = embeddings(30, 20, 30, offset=1e4)
    plain = [(x - x.mean(1, keepdims=True)).astype(np.longdouble) for x in many]
    units = [x / np.sqrt((x * x).sum(1, keepdims=True)) for x in plain]
    upper = np.triu_indices(30, 1)
    exact = [1 - (u @ u.T)[upper] for u in units]
    centred = [matrix - matrix.mean() for matrix in exact]
    lengths = [np.sqrt((matrix * matrix).sum()) for matrix in centred]
    expected = float(centred[0] @ centred[1] / lengths[0] / lengths[1])
    assert max(float(matrix.max()) for matrix in exact) < 1e-6
    assert pairwise_rsa_pearson(many)[0][0, 1] == pytest.approx(expected, abs=1e-7)


def test_ties_share_their_mean_rank_although_they_are_rounded_apart() -> None:
    # Rows of two columns correlate by 1 or -1 alone: all dissimilarities are ties of two kinds.
    x, y = (np.random.default_rng(seed).standard_normal((20, 2)) for seed in (0, 1))
    signs = [np.sign(rows[:, 0] - rows[:, 1]) for rows in (x, y)]
    upper = np.triu_indices(20, 1)
    expected = stats.spearmanr(*(1 - np.outer(sign, sign)[upper] for sign in signs)).statistic
    assert pairwise_rsa_spearman([x, y])[0][0, 1] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("compute", [pairwise_rsa_pearson, pairwise_rsa_spearman])
def test_undefined_rsa_is_named(compute: Callable[..., tuple[Array, None]]) -> None:
    x, y = embeddings(6, 5, 8)
    y[4] = 3.7
    with pytest.raises(ValueError, match=r"^embeddings\[1\]: RSA is undefined where a row is equal .* as row 4 is"):
        compute([x, y])
    with pytest.raises(ValueError, match=r"^embeddings\[1\]: RSA is undefined where all pairs of rows are equally"):
        compute([x, np.eye(6)])
    x[2] *= 1e170
    with pytest.raises(ValueError, match=r"^embeddings\[0\]: .* squares exceed float64"):
        compute([x])


def by_sets(x: Array, y: Array, k: int) -> float:
    searches = [NearestNeighbors(n_neighbors=k, metric="cosine").fit(rows) for rows in (x, y)]
    near = [search.kneighbors(return_distance=False) for search in searches]
    return float(np.mean([len(set(one) & set(other)) / k for one, other in zip(*near, strict=True)]))


@pytest.mark.parametrize("block_bytes", [1, 2**12, 2**28])
@pytest.mark.parametrize(("n", "k"), [(11, 10), (50, 10), (50, 1), (70, 33)])
def test_mutual_neighbours_equal_scikit_learn(
    n: int, k: int, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cka, "BLOCK_BYTES", block_bytes)
    many = embeddings(n, 4, 30, 2)
    matrix, debiased = pairwise_mutual_knn(many, k)
    assert debiased is None
    for i, x in enumerate(many):
        for j, y in enumerate(many[:i]):
            assert matrix[i, j] == matrix[j, i] == pytest.approx(by_sets(x, y, k))


def test_undefined_neighbours_are_named() -> None:
    x, y = embeddings(10, 3, 5)
    with pytest.raises(ValueError, match=r"^embeddings\[0\]: .* undefined for 10 stimuli, .* give 11 stimuli or more"):
        pairwise_mutual_knn([x, y])
    y[3] = 0
    with pytest.raises(ValueError, match=r"^embeddings\[1\]: .* is undefined where a row is 0, as row 3 is"):
        pairwise_mutual_knn([x, y], 4)
    with pytest.raises(ValueError, match=r"^embeddings\[0\]: .* is undefined where all rows lie on one line"):
        pairwise_mutual_knn([np.outer([*range(1, 6), *range(-5, 0)], [1, 2, 3])], 4)
    with pytest.raises(ValueError, match=r"^k must be an integer of 1 or more"):
        pairwise_mutual_knn([x], 0)

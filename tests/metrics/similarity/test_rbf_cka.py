"""CKA with the RBF kernel against loops, scikit-learn and linear CKA; invariances are tested with the catalogue."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import KernelCenterer

from headstart.metrics import linear_cka
from headstart.metrics.similarity import cka
from headstart.metrics.similarity.rbf_cka import pairwise_rbf_cka
from headstart.tests.material.embeddings import embeddings

Array = NDArray[np.float64]
FRACTIONS = pytest.mark.parametrize("fraction", [0.2, 0.4, 0.8, 3])
SHAPES = pytest.mark.parametrize("shape", [(40, 5, 3), (12, 30, 4), (12, 30, 40), (5, 1, 6)])


def kernel_by_loops(x: Array, fraction: float) -> Array:
    n = len(x)
    distances = [[math.dist(x[i], x[j]) for j in range(n)] for i in range(n)]
    width = fraction * float(np.median([distances[i][j] for i in range(n) for j in range(i)]))
    return np.array([[math.exp(-((d / width) ** 2) / 2) for d in row] for row in distances])


def cosine(hsic: Array) -> float:
    return float(hsic[0, 1] / math.sqrt(hsic[0, 0] * hsic[1, 1]))


def biased_hsic(kernels: list[Array]) -> Array:
    """Compute `tr(K H L H)` of the kernels as they are."""
    centring = np.eye(len(kernels[0])) - 1 / len(kernels[0])
    return np.array([[np.trace(k @ centring @ l @ centring) for k in kernels] for l in kernels])  # noqa: E741


def debiased_hsic(kernels: list[Array]) -> Array:
    """Compute equation 5 of Song et al., JMLR 2012, up to a factor, of the kernels with zeroed diagonals."""
    n = len(kernels[0])
    zeroed = [k - np.diag(k.diagonal()) for k in kernels]
    return np.array(
        [
            [np.trace(k @ l) + k.sum() * l.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * (k @ l).sum() for k in zeroed]
            for l in zeroed  # noqa: E741
        ]
    )


@FRACTIONS
@SHAPES
def test_both_estimates_equal_loops(shape: tuple[int, int, int], fraction: float) -> None:
    pair = embeddings(*shape)
    kernels = [kernel_by_loops(x, fraction) for x in pair]
    biased, debiased = pairwise_rbf_cka(pair, fraction)
    assert biased[0, 1] == pytest.approx(cosine(biased_hsic(kernels)), abs=1e-11)
    assert debiased is not None
    assert debiased[0, 1] == pytest.approx(cosine(debiased_hsic(kernels)), abs=1e-8)


@FRACTIONS
def test_biased_equals_scikit_learn(fraction: float, monkeypatch: pytest.MonkeyPatch) -> None:
    many = embeddings(30, 4, 50, 12)
    gammas = [0.5 / (fraction * np.median(pdist(x))) ** 2 for x in many]
    kernels = [rbf_kernel(x, gamma=gamma) for x, gamma in zip(many, gammas, strict=True)]
    flat = np.stack([KernelCenterer().fit_transform(kernel).ravel() for kernel in kernels])
    lengths = np.linalg.norm(flat, axis=1)
    for block_bytes in (1, 2**12, 2**28):
        monkeypatch.setattr(cka, "BLOCK_BYTES", block_bytes)
        matrix = pairwise_rbf_cka(iter(many), fraction)[0]
        np.testing.assert_allclose(matrix, flat @ flat.T / np.outer(lengths, lengths))


def test_wide_kernels_give_linear_cka() -> None:
    x, y = embeddings(25, 6, 40)
    differences = []
    for fraction in (10, 100, 1e4):
        biased, debiased = pairwise_rbf_cka([x, y], fraction)
        assert debiased is not None
        differences.append(abs(biased[0, 1] - linear_cka(x, y)))
        assert debiased[0, 1] == pytest.approx(linear_cka(x, y, debiased=True), abs=10 / fraction**2)
    # The next order of the exponential falls with the square of the width.
    assert differences[0] < 1e-2
    assert differences[1] == pytest.approx(differences[0] / 100, rel=0.1)
    assert differences[2] < 1e-8


@pytest.mark.parametrize("noise", [0, 1e-7])
def test_mostly_equal_rows_are_refused(noise: float) -> None:
    x, y = embeddings(20, 3, 4)
    y[:15] = y[0] * (1 + noise * np.random.default_rng(1).standard_normal((15, 4)))
    with pytest.raises(ValueError, match=r"^embeddings\[1\]: RBF CKA is undefined where the median distance"):
        pairwise_rbf_cka([x, y])
    # The median lies between different rows where there are fewer copies.
    assert np.isfinite(pairwise_rbf_cka([x[10:], y[10:]])[0]).all()


@pytest.mark.filterwarnings("error")
def test_squares_beyond_float64_are_refused() -> None:
    x, y = embeddings(20, 3, 4)
    expected = pairwise_rbf_cka([x, y])[0]
    for factor in (1e-100, 1e150):
        np.testing.assert_allclose(pairwise_rbf_cka([factor * x, y])[0], expected, atol=1e-9)
    with pytest.raises(ValueError, match=r"^embeddings\[0\]: .* squares exceed float64"):
        pairwise_rbf_cka([1e160 * x, y])
    for fraction in (0, -1, math.nan):
        with pytest.raises(ValueError, match=r"^fraction: .* positive"):
            pairwise_rbf_cka([x, y], fraction)


def test_debiased_is_none_where_rows_are_equidistant() -> None:
    biased, debiased = pairwise_rbf_cka([embeddings(6, 4)[0], np.eye(6)])
    assert (0 < biased[0, 1] < 1, debiased) == (True, None)

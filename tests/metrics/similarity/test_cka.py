"""Linear CKA against brute force, closed forms and scikit-learn, and its declared properties."""

import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics.pairwise import linear_kernel
from sklearn.preprocessing import KernelCenterer

from headstart.metrics import biased_and_debiased_cka, linear_cka, mean_pairwise_cka, pairwise_cka
from headstart.metrics.similarity import cka
from headstart.tests.material.embeddings import embeddings

Array = NDArray[np.float64]
Hsic = Callable[[Array, Array], float]

BOTH = pytest.mark.parametrize("debiased", [False, True])
# Rows and two widths: both forms, and rows between the widths.
SHAPES = [(40, 5, 3), (12, 30, 4), (12, 30, 40), (4, 7, 6), (12, 1, 9)]


def double_centred_hsic(x: Array, y: Array) -> float:
    """Compute `tr(K H L H)` of the Gram matrices as they are."""
    centring = np.eye(len(x)) - 1 / len(x)
    return float(np.trace(x @ x.T @ centring @ y @ y.T @ centring))


def song_hsic(x: Array, y: Array) -> float:
    """Compute equation 5 of Song et al., JMLR 2012, with zeroed diagonals."""
    n, k, l = len(x), x @ x.T, y @ y.T  # noqa: E741
    np.fill_diagonal(k, 0)
    np.fill_diagonal(l, 0)
    total = np.trace(k @ l) + k.sum() * l.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * (k @ l).sum()
    return float(total / (n * (n - 3)))


def u_statistic_hsic(x: Array, y: Array) -> float:
    """Average over all four different rows what HSIC is the expectation of."""
    k, l = x @ x.T, y @ y.T  # noqa: E741
    terms = [k[i, j] * (l[i, j] + l[p, q] - 2 * l[i, p]) for i, j, p, q in itertools.permutations(range(len(x)), 4)]
    return float(np.mean(terms))


def kernel_centerer_hsic(x: Array, y: Array) -> float:
    centred = [KernelCenterer().fit_transform(linear_kernel(values)) for values in (x, y)]
    return float((centred[0] * centred[1]).sum())


def by(hsic: Hsic, x: Array, y: Array) -> float:
    return hsic(x, y) / math.sqrt(hsic(x, x) * hsic(y, y))


def by_principal_components(x: Array, y: Array) -> float:
    """Compute equation 14 of Kornblith et al., ICML 2019."""
    (u, a, _), (v, b, _) = (np.linalg.svd(values - values.mean(0), full_matrices=False) for values in (x, y))
    weighted = (a[:, None] ** 2 * b**2 * (u.T @ v) ** 2).sum()
    return float(weighted / ((a**4).sum() * (b**4).sum()) ** 0.5)


def brute_force(debiased: bool) -> Hsic:
    return song_hsic if debiased else double_centred_hsic


@pytest.mark.parametrize(
    ("formula", "debiased", "shapes", "tolerance"),
    [
        (partial(by, double_centred_hsic), False, SHAPES, 1e-11),
        (partial(by, kernel_centerer_hsic), False, SHAPES, 1e-11),
        (by_principal_components, False, [(30, 8, 50)], 1e-12),
        # The CKA of single features is the squared correlation.
        (lambda x, y: stats.pearsonr(x[:, 0], y[:, 0]).statistic ** 2, False, [(25, 1, 1)], 1e-12),
        (partial(by, song_hsic), True, SHAPES, 1e-9),
        (partial(by, u_statistic_hsic), True, [(7, 3, 9)], 1e-11),
    ],
)
def test_as_formulas(
    formula: Callable[[Array, Array], float], debiased: bool, shapes: list[tuple[int, int, int]], tolerance: float
) -> None:
    for shape in shapes:
        x, y = embeddings(*shape)
        assert linear_cka(x, y, debiased) == pytest.approx(formula(x, y), abs=tolerance)


# The products of the Gram matrices of many narrow embeddings would outweigh that of the features.
@pytest.mark.parametrize(
    ("n", "widths", "unused"),
    [(200, (30, 20), "_gram_form"), (20, (30, 20), "_feature_form"), (30, (2,) * 20, "_gram_form")],
)
@BOTH
def test_the_cheaper_form_is_taken(
    n: int, widths: tuple[int, ...], unused: str, debiased: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(cka, unused)
    many = embeddings(n, *widths)
    expected = by(brute_force(debiased), many[0], many[-1])
    assert pairwise_cka(many, debiased)[0, -1] == pytest.approx(expected, abs=1e-10)
    if len(many) == 2:
        assert linear_cka(many[0], many[1], debiased) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(("n", "expected"), [(64, 0.96), (1000, 0.61)])
def test_noise_looks_alike_where_biased_and_not_where_debiased(n: int, expected: float) -> None:
    generator = np.random.default_rng(1)
    x, y = generator.standard_normal((n, 2048)), generator.standard_normal((n, 1280))
    assert linear_cka(x, y) == pytest.approx(expected, abs=0.01)
    assert linear_cka(x, y, debiased=True) == pytest.approx(0, abs=0.03)


@BOTH
def test_far_from_the_origin(debiased: bool) -> None:
    x, y = (values.astype(np.float32) for values in embeddings(50, 20, 30))
    far = (x + np.float32(1000)).astype(np.float32)
    exact = far.astype(np.float64) - 1000
    assert linear_cka(far, y, debiased) == pytest.approx(linear_cka(exact, y, debiased), abs=1e-12)


@BOTH
@pytest.mark.parametrize("block_bytes", [1, 2**12, 2**28])
@pytest.mark.parametrize("n", [17, 100])
def test_matrix_and_mean_equal_the_loop_over_pairs(
    n: int, block_bytes: int, debiased: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = embeddings(n, 3, 40, 5, 12)
    expected = np.array([[by(brute_force(debiased), x, y) for y in many] for x in many])
    monkeypatch.setattr(cka, "BLOCK_BYTES", block_bytes)
    matrix = pairwise_cka(many, debiased)
    both = biased_and_debiased_cka(iter(many))
    np.testing.assert_array_equal(both[debiased], matrix)
    np.testing.assert_allclose(matrix, expected, atol=1e-10)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(matrix.diagonal(), 1)
    mean = expected[np.triu_indices(4, 1)].mean()
    assert mean_pairwise_cka(iter(many), debiased) == pytest.approx(mean, abs=1e-10)
    assert linear_cka(many[0], many[1], debiased) == pytest.approx(expected[0, 1], abs=1e-10)


def test_orthogonal_embeddings_are_never_below_zero() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        basis = np.linalg.qr(np.column_stack([np.ones(40), generator.standard_normal((40, 39))]))[0][:, 1:]
        x, y, z = (basis[:, part::3] @ generator.standard_normal((13, 60)) for part in range(3))
        assert pairwise_cka([x, y, z]).min() >= 0


@pytest.mark.parametrize("odd", [np.eye(6), np.eye(6)[:, :1]])
def test_the_debiased_estimate_is_left_out_where_it_is_undefined(odd: Array) -> None:
    x, y = embeddings(6, 3, 4)
    for many in ([x[:3], y[:3]], [x[:2], y[:2]], [x, y, odd]):
        biased, debiased = biased_and_debiased_cka(many)
        np.testing.assert_array_equal(biased, pairwise_cka(many))
        assert debiased is None

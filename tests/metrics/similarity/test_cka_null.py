"""The null of linear CKA against all permutations and against drawn ones, and what is computed from it."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headstart.metrics import biased_and_debiased_cka, calibrated_cka, cka_null, linear_cka
from headstart.metrics.similarity import permutation_moments

Array = NDArray[np.float64]
# Few rows and two widths: Gram form, feature form, and a single column.
SMALL = pytest.mark.parametrize("shape", [(3, 2, 5), (4, 1, 2), (5, 9, 7), (6, 2, 1), (6, 20, 30), (7, 3, 4)])


def embeddings(n: int, *widths: int, seed: int = 0) -> list[Array]:
    """Draw embeddings away from the origin, whose rows differ in length and whose columns in spread."""
    generator = np.random.default_rng(seed)
    lengths = generator.exponential(size=(n, 1))
    return [
        lengths + generator.standard_normal((n, d)) * np.arange(1, d + 1) ** -0.5 + generator.normal(0, 5, d)
        for d in widths
    ]


def gram(x: Array) -> Array:
    """Compute the Gram matrix of centred rows, of length 1, so that inner products are CKA."""
    centred = x - x.mean(axis=0)
    product: Array = centred @ centred.T
    return product / float(np.linalg.norm(product))


def under_permutations(x: Array, y: Array, orders: list[tuple[int, ...]]) -> Array:
    k, l = gram(x), gram(y)  # noqa: E741
    return np.array([(k * l[np.ix_(order, order)]).sum() for order in orders])


@SMALL
def test_moments_are_those_over_all_permutations(shape: tuple[int, int, int]) -> None:
    x, y = embeddings(*shape)
    orders = list(itertools.permutations(range(shape[0])))
    values = under_permutations(x, y, orders)
    assert [linear_cka(x, y[list(order)]) for order in orders[:9]] == pytest.approx(values[:9].tolist(), abs=1e-12)
    mean, sd = cka_null(x, y)
    assert mean == pytest.approx(values.mean(), abs=1e-12)
    assert sd == pytest.approx(values.std(), abs=1e-12)
    assert calibrated_cka([x, y]).null_skewness[0, 1] == pytest.approx(stats.skew(values), abs=1e-9)


def test_moments_are_those_of_drawn_permutations() -> None:
    generator = np.random.default_rng(0)
    x, y = (generator.standard_normal((60, d)) * np.arange(1, d + 1) ** -0.1 for d in (40, 90))
    values = under_permutations(x, y, [tuple(generator.permutation(60)) for _ in range(20_000)])
    null = cka_null(x, y)
    assert null.mean == pytest.approx(values.mean(), abs=1e-4)
    assert null.sd == pytest.approx(values.std(), rel=0.01)
    calibrated = calibrated_cka([x, y])
    assert calibrated.null_skewness[0, 1] == pytest.approx(stats.skew(values), abs=0.1)
    assert calibrated.null_quantile[0, 1] == pytest.approx(np.quantile(values, 0.95), abs=0.1 * null.sd)


def test_matrices_hold_what_pairs_give() -> None:
    many = embeddings(25, 3, 40, 7)
    calibrated = calibrated_cka(iter(many))
    biased, debiased = biased_and_debiased_cka(many)
    np.testing.assert_array_equal(calibrated.biased, biased)
    assert calibrated.debiased is not None
    np.testing.assert_array_equal(calibrated.debiased, debiased)
    for (i, x), (j, y) in itertools.product(enumerate(many), repeat=2):
        assert (calibrated.null_mean[i, j], calibrated.null_sd[i, j]) == pytest.approx(cka_null(x, y), rel=1e-10)
    np.testing.assert_allclose(calibrated.z, (biased - calibrated.null_mean) / calibrated.null_sd)
    expected = np.maximum(0, (biased - calibrated.null_quantile) / (1 - calibrated.null_quantile))
    np.testing.assert_allclose(calibrated.calibrated, expected, atol=1e-15)
    np.testing.assert_array_equal(calibrated.calibrated.diagonal(), 1)
    for name in ("null_mean", "null_sd", "null_skewness", "p", "calibrated"):
        np.testing.assert_array_equal(getattr(calibrated, name), getattr(calibrated, name).T)


def test_tails_are_those_of_the_pearson_distribution() -> None:
    generator = np.random.default_rng(0)
    many = [generator.standard_normal((30, d)) * np.arange(1, d + 1) ** -0.5 for d in (1, 6, 40)]
    # Rows of equal length: those that are near in one are near in few permutations, those that are far in many. A
    # negative skewness mirrors the tail.
    small = (embeddings(4, 2, 2, seed=seed) for seed in range(200))
    mirrored = next(pair for pair in small if calibrated_cka(pair, 0.8).null_skewness[0, 1] < -0.1)
    for compared, level in ((many, 0.5), (many, 0.9), (many, 0.99), (mirrored, 0.8)):
        calibrated = calibrated_cka(compared, level)
        assert (calibrated.level, calibrated.permutations) == (level, 0)
        tail = stats.pearson3(calibrated.null_skewness, loc=calibrated.null_mean, scale=calibrated.null_sd)
        np.testing.assert_allclose(calibrated.null_quantile, np.minimum(tail.ppf(level), 1), rtol=1e-9)
        np.testing.assert_allclose(calibrated.p, tail.sf(calibrated.biased), rtol=1e-6, atol=1e-9)


def test_unrelated_embeddings_are_told_from_related_ones() -> None:
    generator = np.random.default_rng(0)
    draws = [[generator.standard_normal((16, d)) for d in (300, 200)] for _ in range(200)]
    results = [calibrated_cka(pair) for pair in draws]
    assert results[0].biased[0, 1] > 0.9
    above = [each.calibrated[0, 1] > 0 for each in results]
    # 5 % of 200, within three standard deviations.
    assert 1 <= sum(above) <= 19
    x = draws[0][0]
    related = calibrated_cka([x, x + generator.standard_normal(x.shape)])
    assert related.p[0, 1] < 1e-5
    assert 0.1 < related.calibrated[0, 1] < related.biased[0, 1]


@pytest.mark.slow
def test_skewness_of_many_stimuli_is_estimated_from_few() -> None:
    x, y = embeddings(1200, 30, 50)
    estimated = calibrated_cka([x, y])
    centred = [each - each.mean(axis=0) for each in (x, y)]
    # The null of many stimuli is that of a weighted sum of squares of normal variables.
    eigenvalues = [np.linalg.eigvalsh(each.T @ each) for each in centred]
    second, third = (math.prod(float((each**power).sum()) for each in eigenvalues) for power in (2, 3))
    assert estimated.null_skewness[0, 1] == pytest.approx(8**0.5 * third / second**1.5, rel=0.1)


def test_estimates_from_drawn_rows_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    many = embeddings(300, 40, 300, 5)
    exact = calibrated_cka(many)
    monkeypatch.setattr(permutation_moments, "ROWS", 150)
    estimated = calibrated_cka(many)
    assert not np.array_equal(estimated.null_skewness, exact.null_skewness)
    np.testing.assert_allclose(estimated.null_skewness, exact.null_skewness, rtol=0.25)
    np.testing.assert_allclose(estimated.null_quantile, exact.null_quantile, atol=0.01)
    np.testing.assert_array_equal(calibrated_cka(many).p, estimated.p)


def test_two_stimuli_have_a_null_without_spread() -> None:
    x, y = embeddings(2, 3, 4)
    mean, sd = cka_null(x, y)
    assert mean == pytest.approx(1)
    assert sd == 0
    calibrated = calibrated_cka([x, y])
    assert np.isnan(calibrated.z).all()
    np.testing.assert_array_equal(calibrated.p, 1)
    np.testing.assert_array_equal(calibrated.calibrated, 0)
    # Nor is one made of what rounding leaves between a CKA of 1 and a null that is 1 throughout.
    for seed in range(50):
        far, y = embeddings(2, 3, 4, seed=seed)
        far[0] *= 1e6
        np.testing.assert_array_equal(calibrated_cka([far, y]).calibrated, 0)


def test_rows_at_one_distance_have_a_null_without_spread() -> None:
    (y,) = embeddings(6, 4)
    null = cka_null(np.eye(6), y)
    assert null.mean == pytest.approx(linear_cka(np.eye(6), y), rel=1e-12)
    assert null.sd == 0
    calibrated = calibrated_cka([np.eye(6), y])
    assert math.isnan(calibrated.z[0, 1])
    assert calibrated.p[0, 1] == 1
    assert calibrated.null_sd[1, 1] > 0


def test_mistakes_are_named() -> None:
    x, y = embeddings(8, 3, 4)
    with pytest.raises(ValueError, match=r"^y: a similarity is undefined where all rows are equal"):
        cka_null(x, np.ones((8, 2)))
    with pytest.raises(ValueError, match=r"^y: 7 rows"):
        cka_null(x, y[1:])
    for level in (0, 1, math.nan):
        with pytest.raises(ValueError, match=r"^level: "):
            calibrated_cka([x, y], level)

"""The null of linear CKA against all permutations and against drawn ones, and what is computed from it."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headstart.metrics import CalibratedCka, biased_and_debiased_cka, calibrated_cka, linear_cka
from headstart.metrics.similarity import drawn_nulls
from headstart.metrics.similarity.centred_embedding import read_embeddings

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


def moments(result: CalibratedCka) -> tuple[float, float]:
    """Return mean and standard deviation of the null of two embeddings."""
    return float(result.null_mean[0, 1]), float(result.null_sd[0, 1])


@SMALL
def test_moments_are_those_over_all_permutations(shape: tuple[int, int, int]) -> None:
    x, y = embeddings(*shape)
    orders = list(itertools.permutations(range(shape[0])))
    values = under_permutations(x, y, orders)
    assert [linear_cka(x, y[list(order)]) for order in orders[:9]] == pytest.approx(values[:9].tolist(), abs=1e-12)
    result = calibrated_cka([x, y])
    assert moments(result) == pytest.approx((values.mean(), values.std()), abs=1e-12)
    assert result.null_skewness[0, 1] == pytest.approx(stats.skew(values), abs=1e-9)


def test_moments_are_those_of_drawn_permutations() -> None:
    generator = np.random.default_rng(0)
    x, y = (generator.standard_normal((60, d)) * np.arange(1, d + 1) ** -0.1 for d in (40, 90))
    values = under_permutations(x, y, [tuple(generator.permutation(60)) for _ in range(20_000)])
    calibrated = calibrated_cka([x, y])
    mean, sd = moments(calibrated)
    assert mean == pytest.approx(values.mean(), abs=1e-4)
    assert sd == pytest.approx(values.std(), rel=0.01)
    assert calibrated.null_skewness[0, 1] == pytest.approx(stats.skew(values), abs=0.1)
    assert calibrated.null_quantile[0, 1] == pytest.approx(np.quantile(values, 0.95), abs=0.1 * sd)


def test_matrices_hold_what_pairs_give() -> None:
    many = embeddings(25, 3, 40, 7)
    calibrated = calibrated_cka(iter(many))
    biased, debiased = biased_and_debiased_cka(many)
    np.testing.assert_array_equal(calibrated.biased, biased)
    assert calibrated.debiased is not None
    np.testing.assert_array_equal(calibrated.debiased, debiased)
    for (i, x), (j, y) in itertools.product(enumerate(many), repeat=2):
        pair = moments(calibrated_cka([x, y]))
        assert (calibrated.null_mean[i, j], calibrated.null_sd[i, j]) == pytest.approx(pair, rel=1e-10)
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


@pytest.mark.slow
def test_skewness_of_many_stimuli_is_estimated_from_few() -> None:
    x, y = embeddings(1200, 30, 50)
    estimated = calibrated_cka([x, y])
    centred = [values - values.mean(axis=0) for values in (x, y)]
    # The null of many stimuli is that of a weighted sum of squares of normal variables.
    eigenvalues = [np.linalg.eigvalsh(rows.T @ rows) for rows in centred]
    second, third = (math.prod(float((spectrum**power).sum()) for spectrum in eigenvalues) for power in (2, 3))
    assert estimated.null_skewness[0, 1] == pytest.approx(8**0.5 * third / second**1.5, rel=0.1)


def test_two_stimuli_have_a_null_without_spread() -> None:
    calibrated = calibrated_cka(embeddings(2, 3, 4))
    mean, sd = moments(calibrated)
    assert mean == pytest.approx(1)
    assert sd == 0
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
    calibrated = calibrated_cka([np.eye(6), y])
    mean, sd = moments(calibrated)
    assert mean == pytest.approx(linear_cka(np.eye(6), y), rel=1e-12)
    assert sd == 0
    assert math.isnan(calibrated.z[0, 1])
    assert calibrated.p[0, 1] == 1
    assert calibrated.null_sd[1, 1] > 0


def test_mistakes_are_named() -> None:
    for level in (0, 1, math.nan):
        with pytest.raises(ValueError, match=r"^level: "):
            calibrated_cka(embeddings(8, 3, 4), level)


# Rows, width, and seeds of Student's t of 3 degrees of freedom by which the gamma distribution's p is far off.
HEAVY = pytest.mark.parametrize(
    ("n", "width", "seed"), [(30, 10, 8), (30, 64, 4), (30, 100, 4), (60, 20, 1), (200, 40, 1)]
)


def heavy(n: int, width: int, seed: int) -> list[Array]:
    """Draw two unrelated embeddings whose rows are of lengths of Student's t, so that single ones are long."""
    generator = np.random.default_rng([width, seed])
    return [generator.standard_normal((n, width)) * np.abs(generator.standard_t(3, (n, 1))) for _ in range(2)]


def permuted(x: Array, y: Array) -> Array:
    """Compute CKA of x and y in 2,000 other orders."""
    generator = np.random.default_rng(99)
    return under_permutations(x, y, [tuple(generator.permutation(len(x))) for _ in range(2000)])


@HEAVY
def test_p_and_quantile_are_those_of_permutations(n: int, width: int, seed: int) -> None:
    x, y = heavy(n, width, seed)
    result, values = calibrated_cka([x, y]), permuted(x, y)
    expected = float((values >= linear_cka(x, y)).mean())
    # Four standard errors of the difference of a share of 999 and one of 2,000.
    error = 4 * (expected * (1 - expected) * (1 / 999 + 1 / 2000)) ** 0.5 + 1e-3
    assert (result.outlying[0, 1], result.permutations) == (True, 999)
    assert result.p[0, 1] == result.p[1, 0] == pytest.approx(expected, abs=error)
    if n == 30 and seed in (8, 4) and width < 100:
        gamma = stats.pearson3(result.null_skewness[0, 1]).sf(result.z[0, 1])
        assert abs(gamma - result.p[0, 1]) > 0.1, "the gamma distribution is off there"
    assert (values > result.null_quantile[0, 1]).mean() == pytest.approx(0.05, abs=0.035)


def test_permuted_cka_is_that_of_permuted_rows() -> None:
    generator = np.random.default_rng(0)
    many = [generator.standard_normal((7, width)) for width in (2, 5, 9)]
    orders = np.array([generator.permutation(7) for _ in range(4)])
    values = drawn_nulls.permuted_cka(read_embeddings(many), orders)
    for (b, order), (i, x), (j, y) in itertools.product(enumerate(orders), enumerate(many), enumerate(many)):
        assert values[b, i, j] == pytest.approx(linear_cka(x, y[order]), abs=1e-12)


def test_outliers_that_meet_are_as_rare_as_their_rows_are_many() -> None:
    generator = np.random.default_rng(2)
    x, y = (generator.standard_normal((50, 8)) for _ in range(2))
    x[3] += 40
    y[3] += 40
    assert calibrated_cka([x, y]).p[0, 1] == pytest.approx(1 / 50, abs=0.015)


@pytest.mark.parametrize(("n", "few"), [(20, 3), (100, 6), (300, 15)])
def test_a_few_rows_side_by_side_are_outliers_though_none_is_long_alone(n: int, few: int) -> None:
    generator = np.random.default_rng(n)
    x, y = (generator.standard_normal((n, 40)) for _ in range(2))
    for rows in (x, y):
        rows[generator.permutation(n)[:few]] += 6 * generator.standard_normal(40)
    result, values = calibrated_cka([x, y]), permuted(x, y)
    assert result.outlying[0, 1]
    assert result.p[0, 1] == pytest.approx((values >= linear_cka(x, y)).mean(), abs=0.08)
    assert (values > result.null_quantile[0, 1]).mean() == pytest.approx(0.05, abs=0.035)


def test_neither_order_nor_other_embeddings_change_a_pair() -> None:
    many = [*heavy(40, 20, 0), *heavy(40, 8, 1), *heavy(40, 30, 2)]
    result, turned, part = (calibrated_cka(sets) for sets in (many, many[::-1], many[:3]))
    assert result.outlying.sum() > 20
    for name in ("p", "null_quantile"):
        np.testing.assert_allclose(getattr(turned, name)[::-1, ::-1], getattr(result, name), atol=1e-12)
        np.testing.assert_allclose(getattr(part, name), getattr(result, name)[:3, :3], atol=1e-12)


def test_only_pairs_with_outliers_are_drawn() -> None:
    generator = np.random.default_rng(3)
    usual = [generator.standard_normal((40, 12)) * np.arange(1, 13) ** -0.7 for _ in range(2)]
    many = [usual[0], *heavy(40, 12, 0), usual[1]]
    alone, together = calibrated_cka(usual), calibrated_cka(many)
    np.testing.assert_array_equal(np.argwhere(together.outlying), [[1, 2], [2, 1]])
    assert (alone.permutations, together.permutations) == (0, 999)
    tail = stats.pearson3(together.null_skewness, loc=together.null_mean, scale=together.null_sd)
    outside = ~together.outlying
    np.testing.assert_allclose(together.p[outside], tail.sf(together.biased)[outside], rtol=1e-6, atol=1e-14)
    assert together.p[0, 3] == pytest.approx(alone.p[0, 1], rel=1e-9)
    np.testing.assert_array_equal(calibrated_cka(many).p, together.p)


def test_too_many_stimuli_keep_the_gamma_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    many = heavy(30, 10, 8)
    monkeypatch.setattr(drawn_nulls, "MOST_ENTRIES", 2 * 30 * 30 - 1)
    result = calibrated_cka(many)
    assert (result.outlying[0, 1], result.permutations) == (True, 0)
    tail = stats.pearson3(result.null_skewness[0, 1]).sf(result.z[0, 1])
    assert result.p[0, 1] == pytest.approx(tail, rel=1e-6)

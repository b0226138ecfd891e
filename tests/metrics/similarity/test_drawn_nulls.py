"""The null of embeddings with outliers, against a loop over permutations."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headstart.metrics import calibrated_cka, linear_cka
from headstart.metrics.similarity import drawn_nulls
from headstart.metrics.similarity.centred_embedding import read_embeddings

Array = NDArray[np.float64]
# Rows, width, and seeds of Student's t of 3 degrees of freedom by which the gamma distribution's p is far off.
HEAVY = pytest.mark.parametrize(
    ("n", "width", "seed"), [(30, 10, 8), (30, 64, 4), (30, 100, 4), (60, 20, 1), (200, 40, 1)]
)


def heavy(n: int, width: int, seed: int) -> list[Array]:
    """Draw two unrelated embeddings whose rows are of lengths of Student's t, so that single ones are long."""
    generator = np.random.default_rng([width, seed])
    return [generator.standard_normal((n, width)) * np.abs(generator.standard_t(3, (n, 1))) for _ in range(2)]


def under_permutations(x: Array, y: Array, count: int) -> Array:
    """Compute CKA of x and y in one other order after the other."""
    generator = np.random.default_rng(99)
    grams = [each @ each.T for each in (z - z.mean(axis=0) for z in (x, y))]
    k, l = (gram / np.linalg.norm(gram) for gram in grams)  # noqa: E741
    orders = (generator.permutation(len(x)) for _ in range(count))
    return np.array([(k * l[np.ix_(order, order)]).sum() for order in orders])


@HEAVY
def test_p_and_quantile_are_those_of_permutations(n: int, width: int, seed: int) -> None:
    x, y = heavy(n, width, seed)
    found, values = calibrated_cka([x, y]), under_permutations(x, y, 2000)
    expected = float((values >= linear_cka(x, y)).mean())
    # Four standard errors of the difference of a share of 999 and one of 2,000.
    error = 4 * (expected * (1 - expected) * (1 / 999 + 1 / 2000)) ** 0.5 + 1e-3
    assert (found.outlying[0, 1], found.permutations) == (True, 999)
    assert found.p[0, 1] == found.p[1, 0] == pytest.approx(expected, abs=error)
    assert (values > found.null_quantile[0, 1]).mean() == pytest.approx(0.05, abs=0.035)


def test_the_gamma_distribution_is_off_there() -> None:
    off = []
    for n, width, seed in [(30, 10, 8), (30, 64, 4)]:
        found = calibrated_cka(heavy(n, width, seed))
        tail = stats.pearson3(found.null_skewness[0, 1]).sf(found.z[0, 1])
        off.append(abs(tail - found.p[0, 1]))
    assert min(off) > 0.1


def test_permuted_cka_is_that_of_permuted_rows() -> None:
    generator = np.random.default_rng(0)
    many = [generator.standard_normal((7, width)) for width in (2, 5, 9)]
    orders = np.array([generator.permutation(7) for _ in range(4)])
    values = drawn_nulls.permuted_cka(read_embeddings(many), orders)
    for (b, order), (i, x), (j, y) in itertools.product(enumerate(orders), enumerate(many), enumerate(many)):
        assert values[b, i, j] == pytest.approx(linear_cka(x, y[order]), abs=1e-12)


def test_all_permutations_of_few_rows_have_the_share_that_is_drawn() -> None:
    generator = np.random.default_rng(1)
    x, y = (generator.standard_normal((6, 4)) for _ in range(2))
    x[0] += 20
    y[1] += 20
    found = calibrated_cka([x, y])
    values = [linear_cka(x, y[list(order)]) for order in itertools.permutations(range(6))]
    assert found.outlying[0, 1]
    share = np.mean(np.array(values) >= linear_cka(x, y) - 1e-9)
    assert found.p[0, 1] == pytest.approx(share, abs=0.06)


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
    for each in (x, y):
        each[generator.permutation(n)[:few]] += 6 * generator.standard_normal(40)
    found, values = calibrated_cka([x, y]), under_permutations(x, y, 2000)
    assert found.outlying[0, 1]
    assert found.p[0, 1] == pytest.approx((values >= linear_cka(x, y)).mean(), abs=0.08)
    assert (values > found.null_quantile[0, 1]).mean() == pytest.approx(0.05, abs=0.035)


def test_neither_order_nor_other_embeddings_change_a_pair() -> None:
    many = [*heavy(40, 20, 0), *heavy(40, 8, 1), *heavy(40, 30, 2)]
    found, turned, part = (calibrated_cka(each) for each in (many, many[::-1], many[:3]))
    assert found.outlying.sum() > 20
    for name in ("p", "null_quantile"):
        np.testing.assert_allclose(getattr(turned, name)[::-1, ::-1], getattr(found, name), atol=1e-12)
        np.testing.assert_allclose(getattr(part, name), getattr(found, name)[:3, :3], atol=1e-12)


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
    found = calibrated_cka(many)
    assert (found.outlying[0, 1], found.permutations) == (True, 0)
    tail = stats.pearson3(found.null_skewness[0, 1]).sf(found.z[0, 1])
    assert found.p[0, 1] == pytest.approx(tail, rel=1e-6)

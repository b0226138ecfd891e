"""Intervals of linear CKA over stimuli: leaving out rows by hand, and how often intervals hold."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headstart.metrics import cka_intervals, linear_cka, pairwise_cka
from headstart.metrics.similarity import cka_jackknife
from headstart.tests.material.embeddings import embeddings

Array = NDArray[np.float64]
PAIRS = list(itertools.combinations(range(3), 2))


def half_width(values: list[float]) -> float:
    """Compute t times the jackknife's standard error of values without each row."""
    n = len(values)
    variance = (n - 1) / n * ((np.array(values) - np.mean(values)) ** 2).sum()
    return float(stats.t.ppf(0.975, n - 1) * variance**0.5)


@pytest.mark.parametrize("form", ["_without_by_rows", "_without_by_pairs"])
@pytest.mark.parametrize("block_bytes", [1, 2**28])
@pytest.mark.parametrize("n", [4, 5, 23])
def test_both_forms_equal_leaving_out_rows(
    n: int, block_bytes: int, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = embeddings(n, 3, 40, 5)
    monkeypatch.setattr(cka_jackknife, "BLOCK_BYTES", block_bytes)
    for name in ("_without_by_rows", "_without_by_pairs"):
        monkeypatch.setattr(cka_jackknife, name, getattr(cka_jackknife, form))
    intervals = cka_intervals(iter(many))
    matrix = pairwise_cka(many)
    without = {
        (i, j): [linear_cka(np.delete(many[i], r, axis=0), np.delete(many[j], r, axis=0)) for r in range(n)]
        for i, j in PAIRS
    }
    for (i, j), values in without.items():
        half = half_width(values)
        assert intervals.low[i, j] == intervals.low[j, i] == pytest.approx(max(matrix[i, j] - half, 0), abs=1e-9)
        assert intervals.high[i, j] == intervals.high[j, i] == pytest.approx(min(matrix[i, j] + half, 1), abs=1e-9)
    half = half_width(list(np.mean(list(without.values()), axis=0)))
    mean = np.mean([matrix[pair] for pair in PAIRS])
    assert intervals.mean == pytest.approx((max(mean - half, 0), min(mean + half, 1)), abs=1e-9)
    for ends in (intervals.low, intervals.high):
        np.testing.assert_array_equal(ends.diagonal(), 1)


def test_intervals_hold_the_cka_of_the_population() -> None:
    generator = np.random.default_rng(0)
    maps = [generator.standard_normal((2, 3)), generator.standard_normal((2, 4))]

    def draw(n: int) -> list[Array]:
        shared = generator.standard_normal((n, 2))
        return [shared @ weights + generator.standard_normal((n, weights.shape[1])) for weights in maps]

    x, y = draw(200_000)
    truth = linear_cka(x, y)
    count = 0
    for _ in range(200):
        low, high = cka_intervals(draw(200)).mean
        count += low <= truth <= high
    # 95 % of 200, within three standard deviations and a little for the bias of CKA.
    assert 178 <= count <= 199


def test_stimuli_that_are_few_or_one_point_without_another_have_no_interval() -> None:
    x, y = np.zeros((5, 2)), embeddings(5, 4)[0]
    x[0] = 1
    for many in ([x, y], embeddings(2, 3, 4), embeddings(3, 3, 4)):
        intervals = cka_intervals(many)
        assert np.isnan([intervals.low[0, 1], intervals.high[0, 1], *intervals.mean]).all()


def test_one_embedding_has_no_mean() -> None:
    intervals = cka_intervals(embeddings(9, 4))
    assert intervals.low.tolist() == [[1]]
    assert np.isnan(intervals.mean).all()

"""The statistics against SciPy's other routines and full enumeration, and the scores as they stand in the results."""

import json
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headstart.metrics.sample_efficiency.scores import (
    holm,
    median_interval,
    relative_interval,
    restricted,
    score,
    sign_flip_p_values,
    t_interval,
)
from headstart.tests.material.runs import reaching

INF = np.inf


def sign_flip_p_value(differences: NDArray[np.float64]) -> float:
    return float(sign_flip_p_values(differences[:, None])[0])


def enumerate_sign_flips(differences: NDArray[np.float64]) -> float:
    """Return the share of all sign patterns whose mean is at least as far from 0."""
    patterns = np.array(list(product((-1, 1), repeat=len(differences))))
    return float(np.mean(np.abs(patterns @ differences) >= abs(differences.sum())))


@pytest.mark.parametrize("seed", range(5))
def test_restricted_mean_is_that_of_kaplan_and_meier(seed: int) -> None:
    generator = np.random.default_rng(seed)
    samples = generator.integers(1, 300, 50).astype(np.float64)
    limit = 200
    observed = stats.CensoredData.right_censored(np.minimum(samples, limit), samples > limit)
    survival = stats.ecdf(observed).sf
    times = np.array([0, *survival.quantiles[survival.quantiles < limit], limit])
    area = np.diff(times) @ survival.evaluate(times[:-1])
    assert restricted(np.where(samples > limit, np.inf, samples), limit).mean() == pytest.approx(area)


@pytest.mark.parametrize("count", [6, 7, 20, 100])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_median_interval_as_in_scipy(count: int, level: float) -> None:
    samples = np.random.default_rng(count).permutation(count).astype(np.float64)
    expected = stats.quantile_test(samples, p=0.5).confidence_interval(level)
    assert median_interval(samples, level) == (expected.low, expected.high)


def test_median_interval_of_censored_and_of_few_samples() -> None:
    low, high = median_interval(np.array([10.0] * 5 + [20, INF, INF, INF, INF]))
    assert (low, high) == (10, INF)
    assert median_interval(np.full(10, INF)) == (INF, INF)
    assert np.isnan(median_interval(np.arange(5.0))).all()


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("count", [2, 3, 20, 200])
def test_t_interval_as_in_scipy(count: int, level: float) -> None:
    differences = np.random.default_rng(count).normal(30, 50, count)
    expected = stats.ttest_1samp(differences, 0).confidence_interval(level)
    assert t_interval(differences, level) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("count", range(1, 13))
def test_sign_flips_as_enumerated(count: int) -> None:
    generator = np.random.default_rng(count)
    for shift in (-20, 0, 1, 20):
        # Whole numbers as samples are: ties between patterns are exact. Zeros are among them.
        differences = (generator.integers(-15, 16, count) + shift).astype(np.float64)
        differences[generator.random(count) < 0.2] = 0
        assert sign_flip_p_value(differences) == pytest.approx(enumerate_sign_flips(differences))


def test_drawn_sign_flips_are_seeded_near_the_enumeration_and_never_0() -> None:
    differences = np.random.default_rng(3).integers(-10, 15, 17).astype(np.float64)
    p_value = sign_flip_p_value(differences)
    assert p_value == sign_flip_p_value(differences)
    assert p_value == pytest.approx(enumerate_sign_flips(differences), rel=0.05)
    assert sign_flip_p_value(np.full(40, 3.0)) == pytest.approx(2 / 100_000)


def test_holm() -> None:
    # Sorted: 4 * 0.005, 3 * 0.01, 2 * 0.03, and 1 * 0.04 raised to the 0.06 before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    for p_values, adjusted in (([0.6, 0.9], [1, 1]), ([0.02] * 3, [0.06] * 3), ([0.3], [0.3]), ([], [])):
        assert holm(p_values) == pytest.approx(adjusted)


def test_comparison_is_of_restricted_means() -> None:
    comparison = score_pair([100, INF, 180, 120], [50, 80, INF, 120], limit=200)["comparisons"]["mine"]
    baseline, custom = np.array([100.0, 200, 180, 120]), np.array([50.0, 80, 200, 120])
    interval = stats.ttest_1samp(baseline - custom, 0).confidence_interval(0.95)
    assert comparison["difference_samples"]["mean"] == pytest.approx(37.5)
    assert comparison["difference_samples"]["ci95"] == pytest.approx([interval.low, interval.high])
    # The baseline's restricted mean is 150.
    assert comparison["relative_improvement_percent"] == pytest.approx(25)
    assert comparison["ci95"] == pytest.approx([100 * end for end in relative_interval(baseline, custom)])


@pytest.mark.parametrize("count", [2, 5, 20])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_ends_of_the_relative_interval_are_what_a_t_test_just_refuses(count: int, level: float) -> None:
    generator = np.random.default_rng(count)
    baseline, custom = 60 + generator.random(count), 30 + 9 * generator.random(count)
    for end in relative_interval(baseline, custom, level):
        assert stats.ttest_1samp(custom - (1 - end) * baseline, 0).pvalue == pytest.approx(1 - level)


def test_intervals_of_what_is_not_known_are_undefined_or_not_bounded() -> None:
    assert np.isnan([t_interval(np.array([3.0])), relative_interval(np.array([3.0]), np.array([2.0]))]).all()
    assert relative_interval(np.array([1.0, 500]), np.array([10.0, 20])) == (-np.inf, np.inf)


def score_pair(baseline: list[float], custom: list[float], limit: int = 100) -> dict[str, Any]:
    """Score two methods, and check that the scores are JSON without NaN or infinity."""
    scores = score(reaching(["baseline", "mine"], [baseline, custom], limit), [limit])
    assert json.loads(json.dumps(scores, allow_nan=False)) == scores
    return scores


def test_each_method_by_itself() -> None:
    scores = score_pair([40, INF, 60], [10, 20, 150], limit=100)["methods"]
    assert scores["baseline"] == {
        "samples_to_criterion": [40, None, 60],
        "onset": [31, None, 51],
        "accuracy_at": {"100": [0.75, 0.5, 0.75]},
        "reached": 2,
        "evaluations": [150, 150, 150],
        "median": 60,
        "restricted_mean": pytest.approx(200 / 3),
    }
    assert scores["mine"]["restricted_mean"] == pytest.approx(130 / 3)
    assert scores["mine"]["reached"] == 3


def test_censored_sides_are_named_and_the_median_needs_more_than_half() -> None:
    comparison = score_pair([40, INF, 60, INF, 50], [30, 20, INF, INF, 75])["comparisons"]["mine"]
    texts = ("baseline censored", "custom censored", "baseline and custom censored")
    assert comparison["per_ordering"] == [25, *texts, -50]
    medians: dict[tuple[float, ...], float | None] = {
        (10, 20, INF): 20,
        (10, INF, INF): None,
        (10, 20, 30, INF): 25,
        (INF,) * 4: None,
        (10, 30, INF, INF): None,
    }
    for samples, median in medians.items():
        assert score_pair([*samples], [*samples])["methods"]["mine"]["median"] == median


def test_one_ordering_has_no_interval_and_a_baseline_alone_no_comparison() -> None:
    comparison = score_pair([80], [20])["comparisons"]["mine"]
    assert comparison["ci95"] == comparison["difference_samples"]["ci95"] == [None, None]
    assert comparison["relative_improvement_percent"] == 75
    assert comparison["p_value"] == comparison["p_value_holm"] == 1
    alone = score(reaching(["baseline"], [[20, 30]], 100), [])
    assert (alone["comparisons"], alone["methods"]["baseline"]["median"]) == ({}, 25)


def test_p_values_of_all_custom_methods_are_adjusted_together() -> None:
    generator = np.random.default_rng(0)
    baseline = generator.integers(50, 90, 12).astype(np.float64)
    samples = np.stack([baseline, baseline - 10, baseline - generator.integers(-20, 40, 12), baseline])
    # Infinite samples count as the limit.
    samples[2, :2] = INF, 600
    scores = score(reaching(["baseline", "a", "b", "c"], samples, 500), [])["comparisons"]
    raw = [scores[name]["p_value"] for name in "abc"]
    assert raw[0] < raw[1] < raw[2] == 1
    cut = np.minimum(samples, 500)
    assert raw == pytest.approx([enumerate_sign_flips(cut[0] - custom) for custom in cut[1:]])
    adjusted = [scores[name]["p_value_holm"] for name in "abc"]
    assert adjusted == pytest.approx([3 * raw[0], min(2 * raw[1], 1), 1])


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 9, 16, 17, 20, 100, 300])
def test_sign_flips_as_in_scipy(count: int) -> None:
    generator = np.random.default_rng(count)
    for differences in (generator.integers(-15, 18, count).astype(np.float64), generator.normal(0.1, 1, count)):
        expected = stats.permutation_test(
            (differences,),
            lambda values, axis: np.mean(values, axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=99_999,
            batch=10_000,
            rng=np.random.default_rng(0),
        )
        assert sign_flip_p_value(differences) == pytest.approx(float(expected.pvalue), rel=1e-12)

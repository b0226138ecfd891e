"""Scores without a part of the samples: the parts, and what is concluded."""

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.decomposition import PCA

from headstart.metrics.ranking.aggregates import jackknife_error
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.left_out import divide, interval, significant_differences
from headstart.metrics.transferability.parc import parc, prepare_parc


def make(samples: int, features: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(samples) % 3) + 4
    return generator.standard_normal((samples, features)) + labels[:, None] % 2 + 5, labels


def test_parts_share_every_class() -> None:
    labels = np.random.default_rng(0).permutation(np.repeat([2, 3, 7, 9], [20, 13, 2, 1]))
    parts = divide(labels, 5, 0)
    assert set(parts[labels != 9]) == set(range(5))
    assert parts[labels == 9].tolist() == [-1]
    assert np.bincount(parts[labels == 2]).tolist() == [4] * 5
    assert set(np.bincount(parts[labels == 3])) == {2, 3}
    assert len(set(parts[labels == 7])) == 2
    assert set(np.bincount(parts[parts >= 0])) == {7}
    assert np.array_equal(parts, divide(labels, 5, 0))
    assert not np.array_equal(parts, divide(labels, 5, 1))
    # There are no more parts than samples to leave out.
    assert sorted(divide(np.array([0, 0, 1, 1, 1, 2]), 10, 0)) == [-1, 0, 1, 2, 3, 4]
    assert divide(np.array([3, 1, 2]), 10, 0).tolist() == [-1] * 3
    assert divide(np.array([0, 0, 1, 1]), 0, 0).tolist() == [-1] * 4


def test_prepared_terms_give_the_score_if_all_groups_are_kept() -> None:
    features, labels = make(60, 7)
    inputs, mask = Inputs(features, labels), divide(labels, 5, 0) != 0
    for name, metric in METRICS.items():
        if metric.prepare:
            score = metric.scorer(inputs)
            assert np.mean(score(np.ones(60, dtype=bool), inputs)) == metric.compute(inputs), name
            assert np.mean(score(mask[inputs.order], inputs.subset(mask))) != metric.compute(inputs), name


def test_parc_of_what_is_kept_is_that_of_the_rows() -> None:
    features, labels = make(60, 7)
    mask, inputs = divide(labels, 5, 0) != 0, Inputs(features, labels)
    expected = METRICS["parc"].compute(Inputs(features[mask], labels[mask]))
    assert prepare_parc(inputs.statistics)(mask[inputs.order]) == pytest.approx(expected, rel=1e-12)
    # Only remaining probes of those that are sampled count.
    drawn = np.sort(np.random.default_rng(0).choice(60, 20, replace=False))
    members = inputs.order[drawn][mask[inputs.order][drawn]]
    expected = METRICS["parc"].compute(Inputs(features[members], labels[members]))
    assert prepare_parc(inputs.statistics, probes=20)(mask[inputs.order]) == pytest.approx(expected, rel=1e-12)


def test_released_parc_of_what_is_kept_has_the_scales_and_components_of_all() -> None:
    features, labels = make(60, 7)
    labels = labels % 2  # of two classes, no distances have rounding errors
    mask, inputs = divide(labels, 5, 0) != 0, Inputs(features, labels)
    for components, rows in ((None, features - features.mean(0)), (4, PCA(4).fit_transform(features))):
        expected = parc((rows / rows.std(0))[mask], labels[mask])
        score = prepare_parc(inputs.statistics, variant="released", components=components)(mask[inputs.order])
        assert score == pytest.approx(expected, rel=1e-9)


def test_left_out_one_by_one_a_mean_has_its_standard_error() -> None:
    values = np.random.default_rng(0).standard_normal(30)
    left_out = np.array([np.delete(values, index).mean() for index in range(30)])
    error = values.std(ddof=1) / math.sqrt(30)
    assert jackknife_error(left_out) == pytest.approx(error)
    low, high = interval(float(values.mean()), left_out)
    assert (low, high) == pytest.approx(stats.t(29, values.mean(), error).interval(0.95))


def refuse_by_holm(p_values: list[float]) -> list[bool]:
    """Refuse the equality of pairs one by one, from the smallest p value, as long as it is small enough."""
    ordered = sorted(p_values)
    failed = [p for step, p in enumerate(ordered) if p * (len(ordered) - step) >= 0.05]
    return [p < min(failed, default=math.inf) for p in p_values]


def test_significant_differences_are_those_of_paired_tests_with_holms_adjustment() -> None:
    generator = np.random.default_rng(3)
    # A mean over ten samples without each in turn: the test is the paired t test of the samples.
    values = generator.standard_normal((5, 10)) * 0.3 + generator.standard_normal(10) + np.arange(5)[:, None] / 3
    left_out = np.stack([np.delete(values, index, axis=1).mean(1) for index in range(10)], axis=1)
    result = significant_differences(values.mean(1), left_out)
    pairs = list(combinations(range(5), 2))
    apart = refuse_by_holm([stats.ttest_rel(values[i], values[j]).pvalue for i, j in pairs])
    assert 0 < sum(apart) < 10
    assert [bool(result[pair]) for pair in pairs] == apart
    assert np.array_equal(result, result.T)
    assert not result.diagonal().any()


def test_the_spread_over_starts_is_added_as_in_welchs_t_test() -> None:
    generator = np.random.default_rng(0)
    values, starts = generator.standard_normal(30), 0.4 * generator.standard_normal(8)
    left_out = np.array([np.delete(values, index).mean() for index in range(30)])
    # The errors of two independent means add up in the same way in their difference.
    expected = stats.ttest_ind(values, starts, equal_var=False).confidence_interval(0.95)
    low, high = interval(1.5, left_out, starts)
    assert (high - low, (high + low) / 2) == pytest.approx((expected.high - expected.low, 1.5))
    # Without a spread over samples it is the interval of the starts, and the other way round.
    alone = stats.t(7, starts.mean(), stats.sem(starts)).interval(0.95)
    assert interval(float(starts.mean()), np.zeros(10), starts) == pytest.approx(alone)
    assert interval(1.5, left_out, np.ones(8)) == pytest.approx(interval(1.5, left_out))
    assert interval(1.5, np.ones(4), np.ones(8)) == (1.5, 1.5)


def test_sources_whose_scores_differ_by_their_starts_are_compared_by_welchs_t_test() -> None:
    generator = np.random.default_rng(6)
    starts = generator.standard_normal((5, 8)) * np.linspace(0.1, 1, 5)[:, None] + np.arange(5)[:, None] / 3
    result = significant_differences(starts.mean(1), np.zeros((5, 10)), starts)
    pairs = list(combinations(range(5), 2))
    apart = refuse_by_holm([stats.ttest_ind(starts[i], starts[j], equal_var=False).pvalue for i, j in pairs])
    assert 0 < sum(apart) < 10
    assert [bool(result[pair]) for pair in pairs] == apart
    # The same starts, and samples on which the two differ as much: fewer differences are significant.
    wide = generator.standard_normal((5, 10))
    assert significant_differences(starts.mean(1), wide, starts).sum() < result.sum()

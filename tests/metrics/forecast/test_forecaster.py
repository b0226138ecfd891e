"""Forecasts against exact power laws and other libraries; nothing is read of what comes after the labels known."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

from headstart.metrics.forecast.curve_forecast import (
    empirical_coverage,
    forecast_curve,
    leave_data_sets_out,
    mean_width,
    read_coverage,
)
from headstart.metrics.forecast.forecaster import (
    LEVELS,
    MOST_CLASSES,
    Forecaster,
    Regression,
    data_set_weights,
    ends_of,
    known_cases,
    observe,
    weighted_quantile,
)
from headstart.metrics.forecast.known_curves import CURVE, ORDERING, read_curves, shipped_curves, write_curves

LABELS = np.array([5, 6, 7, 8, 10, 12, 14, 17, 20, 25, 30, 40, 50, 56, 70, 80, 100, 140, 200, 280, 400, 560, 800])
EXPONENTS = {"slow": 0.15, "fast": 0.35}


def simulate(data_sets: int, seed: int = 0, spread: float = 0.05, noise: float = 0.01) -> pd.DataFrame:
    """Return curves of two methods whose exponents differ, with what a data set adds to both, `spread`."""
    generator = np.random.default_rng(seed)
    added = generator.normal(0, spread, data_sets)
    first = generator.uniform(0.4, 0.9, data_sets)
    curves = [
        1 - first[index] * (LABELS / 5) ** -(exponent + added[index]) + generator.normal(0, noise, (4, len(LABELS)))
        for index in range(data_sets)
        for exponent in EXPONENTS.values()
    ]
    names = [f"set {index}" for index in range(data_sets)]
    keys = [(name, name, name, method, 10, k) for name in names for method in EXPONENTS for k in range(4)]
    return pd.DataFrame(np.concatenate(curves), pd.MultiIndex.from_tuples(keys, names=[*CURVE, ORDERING]), LABELS)


def test_more_labels_than_were_measured_forecast_as_many_as_were() -> None:
    curves = shipped_curves()
    forecaster = Forecaster(known_cases(curves))
    assert curves.index.get_level_values("classes").max() == MOST_CLASSES
    for classes, exponent in product((2, 5, 1000), (0.0, 0.1, 0.4)):
        labels = np.unique(np.geomspace(4, 20_000, 60).astype(np.int64))
        accuracies = 1 - 0.45 * (labels / 4) ** -exponent
        for labels_known in (20, 100, 1_000, 20_000):
            forecast = forecast_curve(labels, accuracies[None], classes, "kernel_ridge", labels_known, forecaster)
            later = [forecast.accuracy, *(forecast.at(times)[0] for times in (2, 4, 8))]
            assert later == sorted(later)


def test_more_labels_never_forecast_a_lower_accuracy() -> None:
    # All known curves fall.
    falling = 1 - simulate(6)
    forecaster = Forecaster(known_cases(falling.mul(0.5)))
    accuracies = 1 - 0.3 * (LABELS / 5) ** 0.2
    for labels_known in (20, 50):
        forecast = forecast_curve(LABELS, accuracies[None], 10, "slow", labels_known, forecaster)
        later = [forecast.accuracy, *(forecast.at(times)[0] for times in (2, 4, 8))]
        assert later == sorted(later)


def test_one_more_label_changes_an_interval_a_little() -> None:
    labels = np.arange(5, 120)
    accuracies = 1 - 0.5 * (labels / 5) ** -0.3
    forecaster = Forecaster(known_cases(shipped_curves()))
    for method in ("sgd", "semantic_class_mean"):
        forecasts = [forecast_curve(labels, accuracies[None], 10, method, size, forecaster) for size in range(10, 110)]
        ends = np.array([forecast.at(2)[1][0.8] for forecast in forecasts])
        widths = ends[:, 1] - ends[:, 0]
        assert (np.abs(np.diff(widths)) < 0.1 * widths[1:]).all()


def test_a_power_law_is_continued() -> None:
    forecaster = Forecaster(known_cases(simulate(10, spread=0.02, noise=0.0)))
    for method, exponent in EXPONENTS.items():
        accuracies = 1 - 0.6 * (LABELS / 5) ** -exponent
        forecast = forecast_curve(LABELS, accuracies[None], 10, method, 50, forecaster)
        assert forecast.known == 50
        assert forecast.accuracy == pytest.approx(1 - 0.6 * 10**-exponent)
        expected, ends = forecast.at(8)
        assert expected == pytest.approx(1 - 0.6 * 80**-exponent, abs=0.02)
        assert ends[0.95][0] <= ends[0.8][0] < expected < ends[0.8][1] <= ends[0.95][1]


def test_intervals_hold_on_data_sets_left_out() -> None:
    judged = leave_data_sets_out(known_cases(simulate(30, seed=1), known=[20, 50], ratios=[2, 4]))
    for level in LEVELS:
        assert level - 0.07 < empirical_coverage(judged, level) < min(level + 0.07, 1)


def test_intervals_are_wider_where_a_method_is_harder_to_forecast() -> None:
    curves = simulate(30, seed=1)
    # From 50 labels on, the error of the second method is multiplied by a number that nobody can know.
    jumps = np.where(LABELS > 50, np.random.default_rng(2).uniform(0.5, 1.2, (30, 1)).repeat(4, axis=0), 1)
    fast = curves.index.get_level_values("method") == "fast"
    curves[fast] = 1 - jumps * (1 - curves[fast])
    judged = leave_data_sets_out(known_cases(curves, known=[20, 50], ratios=[2]))
    widths = {}
    for method, known in product(EXPONENTS, (20, 50)):
        part = judged.query("method == @method and labels == @known")
        widths[method, known] = mean_width(part, 0.8)
        assert empirical_coverage(part, 0.8) > 0.7
    assert widths["fast", 50] > 2 * max(widths["fast", 20], widths["slow", 50])


def test_an_unknown_method_has_the_widest_interval() -> None:
    forecaster = Forecaster(known_cases(simulate(10)))
    accuracies = np.linspace(0.3, 0.6, len(LABELS))[None]
    unknown = forecast_curve(LABELS, accuracies, 10, "mine", 50, forecaster)
    assert not unknown.is_known_method
    forecaster.factors[0.8][1, 2] *= 100
    forecasts = [forecast_curve(LABELS, accuracies, 10, name, 50, forecaster) for name in EXPONENTS]
    assert all(forecast.is_known_method for forecast in forecasts)
    wider = forecast_curve(LABELS, accuracies, 10, "mine", 50, forecaster)
    low, high = ends_of(0.8)
    assert (wider.later[high] - wider.later[low]).min() > (unknown.later[high] - unknown.later[low]).max()


def test_thresholds_are_reached_where_the_ends_of_intervals_reach_them() -> None:
    accuracies = 1 - 0.6 * (LABELS / 5) ** -0.3
    forecast = forecast_curve(LABELS, accuracies[None], 5, "streaming_lda", 50)
    for level, ends in forecast.reaches(0.75).items():
        for end, column in zip(ends, reversed(ends_of(level)), strict=True):
            later = [
                labels
                for labels, value in zip(forecast.later["labels"], forecast.later[column], strict=True)
                if value >= 0.75
            ]
            assert end == (min(later) if later else None)
    assert forecast.reaches(1.1) == dict.fromkeys(LEVELS, (None, None))


def test_the_regression_is_that_of_scikit_learn() -> None:
    cases = known_cases(simulate(4), known=[20], ratios=[2, 4])
    generator = np.random.default_rng(0)
    design = generator.standard_normal((len(cases), 5))
    values = generator.standard_normal(len(design))
    deviations, noise = np.array([0.5, 2.0, 0.3, 0.3, 0.3]), 0.7
    regression = Regression(design, values, cases, (0.5, 2.0, 0.3), noise)

    def other(chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        # A prior of deviation s is a penalty of 1 on a column that is s times as large.
        ridge = Ridge(alpha=noise**2, fit_intercept=False)
        weights = data_set_weights(cases["data_set"][chosen])
        return np.asarray(ridge.fit((design * deviations)[chosen], values[chosen], weights).coef_ * deviations)

    np.testing.assert_allclose(regression.coefficients, other(np.full(len(cases), True)), rtol=1e-6)
    for data_set in cases["data_set"].unique():
        rows = (cases["data_set"] == data_set).to_numpy()
        np.testing.assert_allclose(regression.predict_left_out()[rows], design[rows] @ other(~rows), rtol=1e-6)


def test_weighted_quantile_is_that_of_numpy() -> None:
    generator = np.random.default_rng(2)
    values, weights = generator.standard_normal(50), generator.uniform(0.1, 1, 50)
    for level in (0.1, 0.5, 0.8, 0.95, 1.0):
        expected = np.quantile(values, level, weights=weights, method="inverted_cdf")
        assert weighted_quantile(values, weights, level) == expected


def test_what_is_observed_is_a_power_law_within_the_window() -> None:
    accuracies = np.asarray(1 - 0.9 * np.arange(1, 101) ** -0.4, dtype=np.float64)
    seen = observe(np.arange(1, 101), accuracies[None], 64, np.array([4]), 3)
    assert seen["labels"].tolist() == [64]
    assert [*seen["slope"]] == pytest.approx([-0.4])
    assert [*np.exp(seen["level"])] == pytest.approx([0.9 * 64**-0.4])
    assert [*np.exp(seen["chance"])] == pytest.approx([0.75])


def test_curves_are_kept_on_disk(tmp_path: Path) -> None:
    curves = simulate(3)
    curves.iloc[:4, -2:] = np.nan
    write_curves(curves, tmp_path / "curves.csv")
    pd.testing.assert_frame_equal(read_curves(tmp_path / "curves.csv"), curves, check_exact=False, atol=1e-4)


def test_shipped_intervals_hold_as_often_as_they_promise() -> None:
    cases = known_cases(shipped_curves())
    assert cases["data_set"].nunique() >= 8
    # At 2, 4 and 8 times the labels: the nearest ratio below is 1.4.
    judged = leave_data_sets_out(cases).query("ratio > 1.65")
    assert {float(level) for level in read_coverage()} == set(LEVELS)
    for level, share in read_coverage().items():
        assert abs(share - float(level)) <= 0.03
        assert empirical_coverage(judged, float(level)) == pytest.approx(share, abs=5e-4)


def test_a_missing_accuracy_is_refused() -> None:
    accuracies = np.full((2, len(LABELS)), 0.5)
    accuracies[1, 3] = np.nan
    with pytest.raises(ValueError, match="up to 50 labels are missing"):
        forecast_curve(LABELS, accuracies, 3, "sgd", 50)
    with pytest.raises(ValueError, match="up to 4 labels are missing"):
        forecast_curve(LABELS, accuracies, 3, "sgd", 4)

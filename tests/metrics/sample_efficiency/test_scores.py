"""The scores as they stand in the results: censored, undefined and restricted values."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from metrics.sample_efficiency.scores import FEW_ORDERINGS, score

INF = np.inf


def score_pair(baseline: list[float], custom: list[float], limit: int = 100) -> dict[str, Any]:
    """Score two methods, and check that the scores are JSON without NaN or infinity."""
    samples = np.array([baseline, custom], dtype=np.float64)
    scores = score(["baseline", "mine"], samples, samples - 9, np.full(samples.shape, 0.75), limit)
    assert json.loads(json.dumps(scores, allow_nan=False)) == scores
    return scores


def test_each_method_by_itself() -> None:
    scores = score_pair([40, INF, 60], [10, 20, 150], limit=100)["methods"]
    assert scores["baseline"] == {
        "samples_to_criterion": [40, None, 60],
        "onset": [31, None, 51],
        "final_accuracy": [0.75, 0.75, 0.75],
        "reached": 2,
        "median": 60,
        "restricted_mean": pytest.approx(200 / 3),
    }
    assert scores["mine"]["restricted_mean"] == pytest.approx(130 / 3)
    assert scores["mine"]["reached"] == 3


def test_censored_sides_are_named() -> None:
    comparison = score_pair([40, INF, 60, INF, 50], [30, 20, INF, INF, 75])["comparisons"]["mine"]
    assert comparison["per_ordering"] == [
        25,
        "baseline censored",
        "custom censored",
        "baseline and custom censored",
        -50,
    ]


@pytest.mark.parametrize(
    ("samples", "median"),
    [
        ([10, 20, INF], 20),
        ([10, INF, INF], None),
        ([10, 20, 30, INF], 25),
        ([INF] * 4, None),
        ([10, 30, INF, INF], None),
    ],
)
def test_median_only_where_more_than_half_reached(samples: list[float], median: float | None) -> None:
    assert score_pair(samples, samples)["methods"]["mine"]["median"] == median


def test_one_ordering_has_no_interval() -> None:
    comparison = score_pair([80], [20])["comparisons"]["mine"]
    assert comparison["ci95"] == comparison["difference_samples"]["ci95"] == [None, None]
    assert comparison["relative_improvement_percent"] == 75
    assert comparison["p_value"] == comparison["p_value_holm"] == 1


@pytest.mark.parametrize("orderings", [1, FEW_ORDERINGS - 1, FEW_ORDERINGS])
def test_few_orderings_are_noted(orderings: int) -> None:
    samples = np.arange(10.0, 10.0 + orderings).tolist()
    comparison = score_pair(samples, samples)["comparisons"]["mine"]
    assert comparison.get("note", "").startswith(f"{orderings} orderings") == (orderings < FEW_ORDERINGS)


def test_all_censored_at_the_limit() -> None:
    scores = score_pair([INF, INF], [INF, INF], limit=64)
    assert scores["methods"]["baseline"]["restricted_mean"] == 64
    comparison = scores["comparisons"]["mine"]
    assert comparison["relative_improvement_percent"] == 0
    assert comparison["ci95"] == [0, 0]
    assert comparison["p_value"] == 1


def test_p_values_of_all_custom_methods_are_adjusted_together() -> None:
    generator = np.random.default_rng(0)
    baseline = generator.integers(50, 90, 12).astype(np.float64)
    samples = np.stack([baseline, baseline - 10, baseline - generator.integers(-20, 40, 12), baseline])
    scores = score(["baseline", "a", "b", "c"], samples, samples, np.ones_like(samples), 500)["comparisons"]
    raw = [scores[name]["p_value"] for name in "abc"]
    assert raw[0] < raw[1] < raw[2] == 1
    adjusted = [scores[name]["p_value_holm"] for name in "abc"]
    assert adjusted == pytest.approx([3 * raw[0], min(2 * raw[1], 1), 1])


def test_baseline_alone() -> None:
    samples = np.array([[20.0, 30.0]])
    scores = score(["baseline"], samples, samples, np.ones_like(samples), 100)
    assert scores["comparisons"] == {}
    assert scores["methods"]["baseline"]["median"] == 25

"""Ranks against SciPy's, significant differences, saturated metrics, and the report of all of these."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import rankdata

from headstart.evaluation.sources.results import (
    RankedSources,
    describe_ranking,
    find_certainty,
    rank,
)
from headstart.evaluation.sources.scores import Score
from headstart.evaluation.sources.source_ranking import print_source_ranking, source_report
from headstart.evaluation.sources.targets import Target
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.left_out import divide
from headstart.tests.evaluation.sources.conftest import LABELS, score_pool

WIGGLE = (0.01, -0.01, 0.02, -0.02, 0.0)


class SomePhotos:
    """Photos as far as a report reads them."""

    classes = ("ants", "bees", "wasps")
    labels = np.arange(2000) % 3
    maps = None

    def __len__(self) -> int:
        return 2000


def make_ranked(scores: Mapping[str, Mapping[str, Score]], performances: Mapping[str, float]) -> RankedSources:
    photos: Any = SomePhotos()
    metrics = {name: METRICS[name] for name in next(iter(scores.values()))}
    return RankedSources(metrics, scores, performances, Target("insects", "a_folder", "train", photos, "12ab"))


def both_reports(ranked: RankedSources, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Return the report in Markdown, and what is printed with single spaces."""
    print_source_ranking([ranked])
    return source_report([ranked]), " ".join(capsys.readouterr().out.split())


def make_columns(columns: dict[str, list[float | None]]) -> dict[str, dict[str, float | None]]:
    count = len(next(iter(columns.values())))
    return {f"source {index}": {metric: values[index] for metric, values in columns.items()} for index in range(count)}


def test_ranks_are_those_of_scipy_and_baselines_have_no_part_in_the_mean() -> None:
    generator = np.random.default_rng(0)
    columns: dict[str, list[float | None]] = {
        "leep": generator.normal(size=9).tolist(),
        "gbc": generator.integers(0, 4, 9).astype(float).tolist(),
    }
    ranking = rank(make_columns(columns))
    expected = [rankdata(-np.array(values, dtype=float)) for values in columns.values()]
    for metric, ranks in zip(columns, expected, strict=True):
        assert list(ranking.ranks[metric].values()) == ranks.tolist()
    means = np.mean(expected, axis=0)
    assert list(ranking.mean_ranks.values()) == pytest.approx(means)
    assert ranking.names == [f"source {index}" for index in np.argsort(means, kind="stable")]

    without = rank(make_columns(columns), ["leep"])
    assert without.ranks == ranking.ranks
    assert without.mean_ranks == without.ranks["gbc"]


def test_metrics_without_a_score_or_a_difference_rank_nothing() -> None:
    columns: dict[str, list[float | None]] = {"leep": [1.0, None], "num_classes": [7.0, 7.0], "gbc": [-2.0, -1.0]}
    ranking = rank(make_columns(columns | {"h_score": [1 - 1e-15, 1.0]}))
    assert (list(ranking.ranks), ranking.names) == (["gbc"], ["source 1", "source 0"])
    nothing = rank(make_columns({"num_classes": [7.0, 7.0]}))
    assert (nothing.ranks, nothing.mean_ranks) == ({}, {"source 0": None, "source 1": None})
    # Scores that differ by rounding errors alone share a rank.
    ranking = rank(make_columns({"h_score": [1.0, 0.5, 1 - 1e-15]}))
    assert list(ranking.ranks["h_score"].values()) == [1.5, 3, 1.5]


def wiggled(value: float, scale: float = 1.0, shift: int = 0) -> Score:
    return Score(value, 0.0, left_out=tuple(value + scale * w for w in WIGGLE[shift:] + WIGGLE[:shift]))


def test_sources_without_a_significant_difference_share_a_letter() -> None:
    scores = {"far": {"m": wiggled(0.0)}, "near": {"m": wiggled(1.0)}, "same": {"m": wiggled(1.001, shift=2)}}
    certainty = find_certainty(scores, "m")
    assert certainty is not None
    assert certainty.groups == [["same", "near"], ["far"]]
    assert certainty.letters == {"same": "a", "near": "a", "far": "b"}
    compared = [certainty.compare(*pair) for pair in (("near", "far"), ("far", "near"), ("near", "same"))]
    assert compared == [1, -1, 0]
    for other in ({"other": {"m": Score(None, 0.0, "why")}}, {"other": {"m": Score(1.0, 0.0)}}, {}):
        assert find_certainty({"one": {"m": wiggled(1.0)}, **other}, "m") is None, "a source has no interval"


def test_the_answer_says_what_the_photos_tell(capsys: pytest.CaptureFixture[str]) -> None:
    values = {"A": (1.001, 0.0, 3.0), "B": (1.0, 0.0, 2.0), "C": (0.0, 1.0, 1.0), "D": (-1.0, -1.0, 0.0)}
    wiggles = {"A": 0, "B": 2, "C": 0, "D": 0}
    # The third metric has no intervals, and ranks A first.
    scores = {
        name: {
            "log_me": wiggled(first, shift=wiggles[name]),
            "gbc": wiggled(second, shift=wiggles[name]),
            "trans_rate": Score(third, 0.0),
        }
        for name, (first, second, third) in values.items()
    }
    for text in both_reports(make_ranked(scores, {}), capsys):
        for sentence in (
            "First by mean rank: A.",
            "A is significantly better than C under 1 of 3 metrics, and worse under 1.",
            "A is significantly better than D under 2 of 3 metrics.",
            "No metric shows a significant difference between A and B.",
        ):
            assert sentence in text
    alike = {"A": {"gbc": Score(1.0, 0.0)}, "B": {"gbc": Score(1.0, 0.0)}, "D": {"gbc": Score(0.0, 0.0)}}
    assert "First by mean rank: A, B, alike." in both_reports(make_ranked(alike, {}), capsys)[1]


def test_rounding_errors_alone_have_an_interval_of_width_0() -> None:
    assert wiggled(1.0, scale=1e-13).shown == "1 ± 0"
    assert wiggled(1.0).shown.startswith("1.0")
    assert Score(1.0, 0.0).shown == "1"


def make(features: int, seed: int) -> NDArray[np.float64]:
    """Return features; 60 or more tell all samples apart, whatever they have to do with the labels."""
    generator = np.random.default_rng(seed)
    return np.eye(3, features)[LABELS] * seed + generator.standard_normal((60, features))


def rank_features(sources: Mapping[str, NDArray[np.float64]], *metrics: str) -> RankedSources:
    return make_ranked(score_pool({name: METRICS[name] for name in metrics}, sources, divide(LABELS, 5, 0)), {})


def test_a_metric_at_its_bound_for_several_sources_has_no_part_in_the_mean_rank(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wide = {name: make(100, seed) for name, seed in (("one", 1), ("two", 2), ("three", 3))}
    ranked = rank_features({"narrow": make(8, 1), **wide}, "h_score", "log_me")
    assert ranked.saturated == {"h_score": ["one", "two", "three"]}
    assert ranked.ranking.ranks["log_me"] == ranked.ranking.mean_ranks
    # Neither its differences nor its scores count as certain.
    assert list(ranked.certainties) == ["log_me"]
    for name in wide:
        result = ranked.describe_score(name, "h_score")
        assert (result["score"], result["interval"]) == (2, None)
        assert "the highest possible" in result["no_interval"]
    assert ranked.scores["narrow"]["h_score"].interval
    assert describe_ranking([ranked])["saturated"] == {"insects": ranked.saturated}
    for text in both_reports(ranked, capsys):
        assert "H-score (saturated)" in text
        assert "LogME (saturated)" not in text
        assert "H-score is saturated: 3 of 4 sources have the highest possible score." in text
        assert "± 0 " not in text


def test_noise_of_many_features_does_not_win(capsys: pytest.CaptureFixture[str]) -> None:
    # There are 60 samples, but 48 without a part.
    for features, remark in (
        (100, "1 of 3 sources has the highest possible score. It does not show which of the sources is best"),
        (58, "1 of 3 sources has the highest possible score, or has it whichever part of the photos is left out."),
    ):
        noise = np.random.default_rng(0).standard_normal((60, features))
        ranked = rank_features(
            {"noise": noise, "good": make(8, 3), "fair": make(10, 1)}, "h_score", "sfda", "knn", "log_me"
        )
        assert ranked.saturated == {"h_score": ["noise"], "sfda": ["noise"]}
        score = ranked.scores["noise"]["h_score"]
        assert (score.at_bound, score.interval) == (features == 100, None)
        assert "highest possible" in score.uncertain
        assert ranked.ranking.ranks["h_score"]["noise"] == 1
        assert list(ranked.certainties) == ["knn", "log_me"]
        assert ranked.ranking.mean_ranks == {"good": 1, "fair": 2, "noise": 3}
        for text in both_reports(ranked, capsys):
            assert remark in text
            assert "does not count in the mean rank: many features reach that score, whatever the labels." in text
            assert "good is significantly better than noise under 2 of 4 metrics." in text


def test_one_source_alone_whose_accuracy_is_1_is_the_best_and_several_say_nothing() -> None:
    perfect = 100 * np.eye(3)[LABELS] + 1e-9 * make(3, 0)
    ranked = rank_features({"fair": make(8, 1), "perfect": perfect}, "knn")
    # Its interval cannot be computed, so that the difference is not significant.
    assert (ranked.saturated, ranked.certainties) == ({}, {})
    assert ranked.ranking.mean_ranks == {"fair": 2, "perfect": 1}
    ranked = rank_features({"one": perfect, "two": perfect}, "knn", "nce")
    assert list(ranked.saturated) == ["knn"]
    assert ranked.ranking.mean_ranks == {"one": None, "two": None}


def test_the_catalogue_marks_the_metrics_whose_bound_many_features_reach() -> None:
    inputs = Inputs(np.random.default_rng(0).standard_normal((60, 100)), LABELS)
    of_features = {name: metric for name, metric in METRICS.items() if metric.data == ("statistics",)}
    bounds = {name: bound for name, metric in of_features.items() if (bound := metric.bound(3)) is not None}
    reached = {name for name, bound in bounds.items() if METRICS[name].compute(inputs) == pytest.approx(bound)}
    assert reached == {name for name, metric in METRICS.items() if metric.features_reach_bound}


def test_markdown() -> None:
    values: dict[str, list[float | None]] = {"good": [-0.125, 2.0, None], "bad|*ly*": [-1.5, 2.0, -0.0]}
    scores = {
        source: {
            metric: Score(value, 0.25, "too few photos" if value is None else "")
            for metric, value in zip(("leep", "num_classes", "gbc"), row, strict=True)
        }
        for source, row in values.items()
    }
    report = source_report([make_ranked(scores, {"good": 0.9})])
    for line in (
        "## insects",
        "2,000 training photos of 3 classes (a\\_folder).",
        "| source | mean rank | LEEP | NumC | GBC | performance |\n| --- | ---: | ---: | ---: | ---: | ---: |",
        "| good | 1.00 | -0.125 (1) | 2 | – | 0.9 |\n| bad\\|\\*ly\\* | 2.00 | -1.5 (2) | 2 | 0 | – |",
        "- NumC counts the classes of the target: it is the same for all sources, and ranks none.",
        "- GBC has no score for good: too few photos.",
    ):
        assert f"\n{line}\n" in report

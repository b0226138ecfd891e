"""Metrics at their highest possible score: no part in the mean rank, no interval, and a remark beside the numbers."""

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.evaluation.sources.results import RankedSources, describe_ranking
from headstart.evaluation.sources.scores import score_source
from headstart.evaluation.sources.source_ranking import print_source_ranking, source_report
from headstart.evaluation.sources.targets import Target
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.left_out import divide
from headstart.output.progress import Progress

LABELS = np.arange(60) % 3
PARTS = divide(LABELS, 5, 0)
DOCUMENT = {"seed": 0, "versions": {}, "digests": {"weights": {}}, "weights_files": {}}


class SixtyPhotos:
    """Photos as far as a report reads them."""

    classes = ("ants", "bees", "wasps")
    labels = LABELS
    maps = None

    def __len__(self) -> int:
        return 60


def make(features: int, seed: int) -> NDArray[np.float64]:
    """Return features; 60 or more tell all samples apart, whatever they have to do with the labels."""
    generator = np.random.default_rng(seed)
    return np.eye(3, features)[LABELS] * seed + generator.standard_normal((60, features))


def rank(sources: Mapping[str, NDArray[np.float64]], *metrics: str) -> RankedSources:
    chosen, photos = {name: METRICS[name] for name in metrics}, SixtyPhotos()
    with Progress("metrics", 1, "scores") as progress:
        scores = {name: score_source(chosen, Inputs(x, LABELS), PARTS, progress) for name, x in sources.items()}
    target = Target("insects", "a_folder", "train", photos, "12ab")  # type: ignore[arg-type]
    return RankedSources(chosen, scores, {}, target, dict.fromkeys(sources, 0.0))


def test_a_metric_at_its_bound_for_several_sources_has_no_part_in_the_mean_rank(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wide = {name: make(100, seed) for name, seed in (("one", 1), ("two", 2), ("three", 3))}
    ranked = rank({"narrow": make(8, 1), **wide}, "h_score", "log_me")
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

    print_source_ranking([ranked])
    for text in (source_report([ranked], DOCUMENT), " ".join(capsys.readouterr().out.split())):
        assert "H-score (saturated)" in text
        assert "LogME (saturated)" not in text
        assert "H-score is saturated: 3 of 4 sources have the highest possible score." in text
        assert "± 0 " not in text


@pytest.mark.parametrize(
    ("features", "remark"),
    [
        (100, "1 of 3 sources has the highest possible score. It does not show which of the sources is best"),
        # There are 60 samples, but 48 without a part.
        (58, "1 of 3 sources has the highest possible score, or has it whichever part of the photos is left out."),
    ],
)
def test_noise_of_many_features_does_not_win(features: int, remark: str, capsys: pytest.CaptureFixture[str]) -> None:
    noise = np.random.default_rng(0).standard_normal((60, features))
    ranked = rank({"noise": noise, "good": make(8, 3), "fair": make(10, 1)}, "h_score", "sfda", "knn", "log_me")
    assert ranked.saturated == {"h_score": ["noise"], "sfda": ["noise"]}
    score = ranked.scores["noise"]["h_score"]
    assert (score.at_bound, score.interval) == (features == 100, None)
    assert "highest possible" in score.uncertain
    assert ranked.ranking.ranks["h_score"]["noise"] == 1
    assert list(ranked.certainties) == ["knn", "log_me"]
    assert ranked.ranking.mean_ranks == {"good": 1, "fair": 2, "noise": 3}

    print_source_ranking([ranked])
    for text in (source_report([ranked], DOCUMENT), " ".join(capsys.readouterr().out.split())):
        assert remark in text
        assert "does not count in the mean rank: many features reach that score, whatever the labels." in text
        assert "good is significantly better than noise under 2 of 4 metrics." in text


def test_one_source_alone_whose_accuracy_is_1_is_the_best() -> None:
    ranked = rank({"fair": make(8, 1), "perfect": 100 * np.eye(3)[LABELS] + 1e-9 * make(3, 0)}, "knn")
    assert ranked.saturated == {}
    assert ranked.ranking.mean_ranks == {"fair": 2, "perfect": 1}
    # Its interval cannot be computed, so that the difference is not significant.
    assert ranked.scores["perfect"]["knn"].interval is None
    assert ranked.certainties == {}


def test_a_metric_at_its_bound_for_all_sources_is_named_once() -> None:
    ranked = rank({name: 100 * np.eye(3)[LABELS] + 1e-9 * make(3, 0) for name in ("one", "two")}, "knn", "nce")
    assert list(ranked.saturated) == ["knn"]
    assert ranked.ranking.mean_ranks == {"one": None, "two": None}


def test_the_catalogue_marks_the_metrics_whose_bound_many_features_reach() -> None:
    inputs = Inputs(np.random.default_rng(0).standard_normal((60, 100)), LABELS)
    bounded = {name: each for name, each in METRICS.items() if each.bound and each.data == ("statistics",)}
    reached = {name for name, each in bounded.items() if each.bound(3) == pytest.approx(each.compute(inputs))}  # type: ignore[misc]
    assert reached == {name for name, each in METRICS.items() if each.features_reach_bound}

"""Scores of metrics that compare sources, from the terms of those that have some, and scores on disk."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.datamodules.row_computation import RowComputer
from headstart.evaluation.sources import transferability as command
from headstart.evaluation.sources.metric_names import find_metrics
from headstart.evaluation.sources.results import find_certainty
from headstart.evaluation.sources.scores import Score, StoredScores, compare_sources, score_source, score_targets
from headstart.metrics.transferability.baselines import SourceFacts
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.discriminant_metrics import ncti, ncti_terms
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.left_out import divide, interval
from headstart.tests.evaluation.sources.conftest import LABELS, score_pool

COMPARED = {name: METRICS[name] for name in ("h_score", "ncti")}
SPREADS = {"near": 0.3, "middle": 1.0, "far": 2.0}


def make(spread: float) -> NDArray[np.float64]:
    generator = np.random.default_rng(0)
    return np.eye(3, 8)[LABELS] + spread * generator.standard_normal((60, 8))


def score(parts: NDArray[np.int64]) -> dict[str, dict[str, Score]]:
    return score_pool(COMPARED, {name: make(spread) for name, spread in SPREADS.items()}, parts)


def test_they_are_those_of_the_pool_with_all_photos_and_without_each_part() -> None:
    parts = divide(LABELS, 4, 0)
    scores = compare_sources(COMPARED, score(parts))
    features = [make(spread) for spread in SPREADS.values()]
    terms = np.array([ncti_terms(x, LABELS) for x in features])
    whole = ncti(terms)
    assert [its["ncti"].value for its in scores.values()] == pytest.approx(whole.tolist(), rel=1e-9)
    assert scores["near"]["ncti"].value == max(whole)
    for part in range(4):
        mask = parts != part
        # The scale is that of all photos.
        rest = np.array([ncti_terms(x[mask], LABELS[mask]) for x in features])
        without = (rest - terms.min(0)) / np.ptp(terms, axis=0) @ [1, 1, -1]
        results = [its["ncti"].left_out[part] for its in scores.values()]
        assert results == pytest.approx(without.tolist(), rel=1e-7, abs=1e-9)
    assert all(its["ncti"].interval and its["h_score"].interval for its in scores.values())


def test_sources_of_one_kind_do_not_differ_significantly_through_scaling() -> None:
    """With two sources scores on the pool's scale are 0 and 1; what photos say of them is in how the terms vary."""
    etran, apart = {"etran": METRICS["etran"]}, 0
    for seed in range(20):
        generator, parts = np.random.default_rng(seed), divide(LABELS, 10, seed)
        pair = {name: np.eye(3, 8)[LABELS] + generator.standard_normal((60, 8)) for name in ("one", "other")}
        result = find_certainty(compare_sources(etran, score_pool(etran, pair, parts)), "etran")
        assert result is not None
        apart += bool(result.differ.any())
    assert apart <= 2


def test_one_without_terms_has_no_part_and_one_without_an_interval_leaves_none() -> None:
    scores = score(divide(LABELS, 4, 0))
    scores["far"]["ncti"] = Score(None, 0.0, "why")
    scores["middle"]["ncti"] = Score(None, 0.0, terms=scores["middle"]["ncti"].terms, uncertain="a part")
    result = {source: by_metric["ncti"] for source, by_metric in compare_sources(COMPARED, scores).items()}
    assert (result["near"].value, result["middle"].value, result["far"].reason) == (2, -1, "why")
    assert result["near"].interval is None
    alone = compare_sources(COMPARED, {"near": scores["near"]})["near"]["ncti"]
    assert alone.value is None
    assert "there is only one" in alone.reason


def test_an_interval_holds_the_spread_over_starts_and_one_start_or_no_parts_have_none() -> None:
    def score_by_fits(fits: int, parts: NDArray[np.int64]) -> Score:
        [(name, metric)] = find_metrics([{"n_leep": {"fits": fits, "components_per_class": 2}}]).items()
        return score_pool({name: metric}, {"one": make(0.7)}, parts)["one"][name]

    result = score_by_fits(4, divide(LABELS, 5, 0))
    left_out, starts = np.array(result.left_out), np.array(result.starts)
    assert len(set(result.starts)) > 1
    assert result.value == pytest.approx(starts.mean())
    assert result.interval == interval(starts.mean(), left_out, starts) != interval(starts.mean(), left_out)

    one, no_parts = score_by_fits(1, divide(LABELS, 5, 0)), score_by_fits(8, np.full(60, -1))
    assert (len(one.starts), one.interval, no_parts.interval, no_parts.uncertain) == (1, None, None, "")
    assert "a single random start" in one.uncertain
    assert [result.shown for result in (one, no_parts)] == [f"{result.value:.4g}" for result in (one, no_parts)]
    compared = compare_sources(COMPARED, score(np.full(60, -1)))
    assert all(its["ncti"].value is not None and its["ncti"].interval is None for its in compared.values())


def test_a_target_without_a_score_says_why_and_the_others_are_scored() -> None:
    inputs = Inputs(np.eye(3)[LABELS], LABELS)
    infinite = replace(METRICS["log_me"], function=lambda statistics: math.inf)
    metrics = {"infinite": infinite, "leep": METRICS["leep"], "num_classes": METRICS["num_classes"]}
    two, three = score_targets(inputs, [np.array([0, 1]), np.array([0, 1, 2])], metrics)
    assert (two["infinite"].value, two["infinite"].reason) == (None, "the score is inf")
    assert "source head" in two["leep"].reason
    assert (two["num_classes"].value, three["num_classes"].value) == (-2, -3)


STORED = "--metrics=[log_me, leep, ncti, {gbc: {pca: 8}}, num_classes]"
CODES = np.arange(12) % 2
PARTS = np.arange(12) % 3


def make_inputs(**changes: Any) -> Inputs:
    features = np.random.default_rng(0).standard_normal((12, 4))
    return Inputs(**{"features": features, "labels": CODES, "seed": 1, **changes})


def test_a_second_command_computes_what_is_missing(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[set[str]] = []

    def note(metrics: Any, *rest: Any) -> Any:
        computed.append(set(metrics))
        return score_source(metrics, *rest)

    monkeypatch.setattr(command, "score_source", note)
    first = run(STORED, "--resamples=3")
    with monkeypatch.context() as patch:
        patch.setattr(RowComputer, "compute", lambda *_: pytest.fail("a row is computed again"))
        again = run(STORED, "--resamples=3", output="again")
    assert (again.rows, again.cells) == (first.rows, first.cells)
    run("--metrics=[log_me, {gbc: {pca: 7}}]", "--resamples=3", output="more")
    run("--metrics=[log_me]", "--resamples=4", output="parts")
    # Of a user's own function it is not known what it depends on.
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_for_storing.py").write_text("def own(features):\n    return float(features.mean())\n")
    for output in ("own", "own again"):
        run("--metrics=[own_for_storing.own]", "--resamples=0", output=output)
    own = {"own_for_storing.own"}
    expected = [{"log_me", "leep", "ncti", "gbc(pca=8)", "num_classes"}, {"gbc(pca=7)"}, {"log_me"}, own, own]
    assert computed == [metrics for metrics in expected for _ in range(2)]


def test_scores_come_back_as_they_are_by_whatever_they_depend_on(tmp_path: Path) -> None:
    scores = {
        "log_me": Score(0.1 + 0.2, 1.5, left_out=(0.1, 1 / 3)),
        "ncti": Score(None, 0.5, terms=(1.0, 2.0, 3.0), left_out_terms=((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))),
        "leep": Score(None, 0.0, "the model has no source head"),
    }
    stored = StoredScores(tmp_path, make_inputs(), PARTS)
    stored.keep({name: score for name, score in scores.items() if name != "leep"})
    stored.keep({"leep": scores["leep"], "mine.own": Score(1.0, 0.0)})
    assert StoredScores(tmp_path, make_inputs(), PARTS).scores == scores

    changed = make_inputs().features.copy()
    changed[3, 2] = np.nextafter(changed[3, 2], 1)
    changes: list[dict[str, Any]] = [
        *({"features": features} for features in (changed, changed.astype(np.float32), make_inputs().features[:, :3])),
        *({"labels": CODES[::-1]}, {"logits": np.zeros((12, 3))}, {"seed": 2}, {"facts": SourceFacts(10, 0.5)}),
    ]
    others = [StoredScores(tmp_path, make_inputs(**change), PARTS) for change in changes]
    others.append(StoredScores(tmp_path, make_inputs(), PARTS[::-1]))
    assert [other.scores for other in others] == [{}] * 8
    assert len({other.file for other in [stored, *others]}) == 9


def test_scores_that_cannot_be_read_or_written_are_computed(tmp_path: Path) -> None:
    stored = StoredScores(tmp_path, make_inputs(), PARTS)
    stored.keep({"log_me": Score(1.0, 0.0)})
    before = stored.file.read_text()
    for text in ("", "{}", before.replace("1.0", "1.5")):
        stored.file.write_text(text)
        assert StoredScores(tmp_path, make_inputs(), PARTS).scores == {}
    (tmp_path / "file").touch()
    StoredScores(tmp_path / "file", make_inputs(), PARTS).keep({"log_me": Score(1.0, 0.0)})

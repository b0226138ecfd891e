"""Rankings of made-up scores, against loops over pairs and SciPy."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from headstart.evaluation.alignment import submission_ranking
from headstart.evaluation.alignment.submission_ranking import Score, markdown_ranking, rank_submissions, readings


def scores_of(**by_reading: list[Score]) -> dict[str, dict[str, Score]]:
    """Return the scores of submissions by some readings, and by the others their scores by linear CKA."""
    count = len(by_reading["linear_cka"])
    return {
        f"s{i}": {name: by_reading.get(name, by_reading["linear_cka"])[i] for name in readings()} for i in range(count)
    }


def test_equal_to_loops() -> None:
    generator = np.random.default_rng(0)
    contract, other = generator.integers(0, 8, (2, 12)) / 10
    scores = scores_of(linear_cka=contract.tolist(), svcca=other.tolist())
    result = rank_submissions(scores)
    measure = result["measures"]["svcca"]
    expected = {
        (f"s{i}", f"s{j}") for i, j in permutations(range(12), 2) if contract[i] > contract[j] and other[i] < other[j]
    }
    assert {tuple(pair) for pair in measure["swaps"]} == expected
    assert measure["swapped_pairs"] == len(expected) > 0
    assert measure["kendall_tau"] == pytest.approx(stats.kendalltau(contract, other).statistic, abs=1e-9)
    ranks = [result["scores"][name]["svcca"]["rank"] for name in scores]
    assert ranks == stats.rankdata(-other, method="min").tolist()
    gaps = [contract[int(one[1:])] - contract[int(two[1:])] for one, two in measure["swaps"]]
    assert gaps == sorted(gaps, reverse=True)
    assert result["measures"]["linear_cka"]["kendall_tau"] == 1


def test_rounding_swaps_nothing() -> None:
    result = rank_submissions(scores_of(linear_cka=[0.5, 0.5 + 1e-13, 0.4], cca=[0.5 + 1e-13, 0.5, 0.4]))
    assert result["measures"]["cca"]["swapped_pairs"] == 0
    assert [result["scores"][name]["cca"]["rank"] for name in ("s0", "s1", "s2")] == [1, 1, 3]


def test_submissions_without_a_score_are_left_out() -> None:
    result = rank_submissions(scores_of(linear_cka=[0.9, 0.5, 0.4], cca=["too wide", 0.3, 0.6], pwcca=["x", "x", 0.1]))
    measure = result["measures"]["cca"]
    assert (measure["compared_pairs"], measure["swaps"], measure["kendall_tau"]) == (1, [["s1", "s2"]], -1)
    assert result["scores"]["s0"]["cca"] == {"score": None, "rank": None, "reason": "too wide"}
    assert measure["first"] == ["s2"]
    assert result["measures"]["pwcca"]["kendall_tau"] is None
    equal = rank_submissions(scores_of(linear_cka=[0.9, 0.5], cca=[0.5, 0.5]))["measures"]["cca"]
    assert (equal["kendall_tau"], equal["swapped_pairs"]) == (None, 0)


def test_the_pairs_that_are_named_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission_ranking, "MOST_SWAPS", 3)
    measure = rank_submissions(scores_of(linear_cka=[0.9, 0.8, 0.6, 0.3], cca=[0.1, 0.2, 0.3, 0.4]))["measures"]["cca"]
    assert measure["swapped_pairs"] == 6
    assert measure["swaps"] == [["s0", "s3"], ["s1", "s3"], ["s0", "s2"]]


def test_sentences_say_what_changes() -> None:
    def summarise(**by_reading: Any) -> str:
        return markdown_ranking({"team": "red", **rank_submissions(scores_of(**by_reading))})

    assert "No measure puts two submissions in the opposite order." in summarise(linear_cka=[0.9, 0.5])
    text = summarise(linear_cka=[0.9, 0.5, 0.1], cca=[0.4, 0.5, 0.1], svcca=[0.9, 0.1, 0.2], pwcca=["why", 0.5, 0.1])
    assert "- By mean CCA: s1 first; s1 before s0." in text
    assert "- By SVCCA: s2 before s1." in text
    assert "- No score by PWCCA: 1 of 3, why." in text
    assert "No measure would" not in text

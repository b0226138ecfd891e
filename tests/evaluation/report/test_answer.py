"""The sentences that a page begins with say what its documents say."""

from typing import Any

import numpy as np

from headstart.evaluation.report import answer


def setting(**changes: Any) -> dict[str, Any]:
    best = {
        **{"name": "mine", "reached": 9, "orderings": 10, "restricted_mean": 23.4},
        **{"restricted_mean_interval": [20.0, 26.6], "relative_improvement": 35.2},
        "relative_improvement_interval": [24.0, 45.0],
    }
    known = {"name": "pets", "threshold": 0.8, "baseline": "baseline", "tied_for_first": ["mine"]}
    return {**known, "methods": [{**best, **changes}, {"name": "baseline"}, {"name": "other"}]}


def comparison(*settings: dict[str, Any], over: dict[str, Any] | None = None) -> list[str]:
    return answer.of_comparison({"settings": settings, "over_settings": over})


def test_one_setting_has_the_winner_its_lead_and_how_sure_it_is() -> None:
    [told] = comparison(setting())
    assert told == (
        "mine needs the fewest labelled samples on pets: 23 [20, 27] to reach 80%, 35 [24, 45] % fewer than baseline. "
        "It reached that in 9 of 10 orderings; the others count as the limit. All others need significantly more."
    )
    [tied] = comparison({**setting(reached=10), "tied_for_first": ["mine", "other"]})
    assert tied.endswith("fewer than baseline. Not significantly different: other.")
    [none] = comparison(setting(reached=0))
    assert none == "pets: no method met the criterion of 80% in any ordering."
    assert comparison(*[setting()] * 5)[3:] == ["2 more settings below."]


def test_several_settings_have_one_winner_and_the_chance_that_it_is_one() -> None:
    methods = [
        {"name": name, "interquartile_mean": mean, "interquartile_mean_interval": [mean, mean]}
        for name, mean in (("mine", 0.7), ("other", 1.1))
    ]
    losing = {**setting(), "name": "birds", "tied_for_first": ["other"]}
    for low, is_sure in ((0.55, True), (0.45, False), (None, False)):
        chance = {"better": "mine", "worse": "other", "probability": 0.6, "interval": [low, 0.75]}
        over = {"of": "2 settings", "settings": ["pets", "birds"], "methods": methods}
        [told] = comparison(setting(), losing, over={**over, "probability_of_improvement": [chance]})
        assert told.startswith("mine needs the fewest labelled samples over 2 settings: 0.70")
        assert told.endswith("in 1 of 2 settings.")
        assert ("chance can explain" in told) != is_sure


def test_the_most_and_the_least_alike_are_those_of_a_search() -> None:
    values = np.random.default_rng(0).uniform(size=(5, 5))
    values = (values + values.T) / 2
    document = {"pairwise": {"names": list("abcde"), "biased": values.tolist()}, "n_stimuli": 9}
    pairs = {(i, j): values[i, j] for i in range(5) for j in range(i)}
    most, least = max(pairs, key=pairs.__getitem__), min(pairs, key=pairs.__getitem__)
    told = answer.of_similarity(document)
    for (i, j), words in ((most, "are the most alike"), (least, "the least")):
        assert f"{'abcde'[i]} and {'abcde'[j]} {words}" in told
    assert told.endswith(f"{np.mean(list(pairs.values())):.2f}.")


def test_the_source_to_transfer_has_the_lowest_mean_rank() -> None:
    told = answer.of_transferability({"mean_ranks": {"pets": {"a": 1.5, "b": 1.5, "c": 2.5, "d": None}}})
    assert told.startswith("For pets, transfer a or b: mean rank 1.5 of 3 sources.")
    told = answer.of_transferability({"mean_ranks": {"pets": {"a": None}}})
    assert told.startswith("For pets, no source has a mean rank.")


TRUSTED, NOT_TRUSTED = "so it can be trusted on such targets.", "so this table is no reason to trust it."
# The p values of metrics, the first one's mean difference, the low end of its interval, the targets; the verdict.
VERDICTS: list[tuple[list[float | None], float, float, int, str]] = [
    ([0.01], 0.5, 0.1, 8, TRUSTED),
    ([0.2], 0.5, 0.1, 8, NOT_TRUSTED),
    # The best of many metrics is better by chance.
    ([0.01, *[0.5] * 29], 0.5, 0.1, 8, NOT_TRUSTED),
    ([0.01], -0.5, 0.1, 8, NOT_TRUSTED),
    # Better than a fixed ranking that misleads.
    ([0.01], 0.5, -0.1, 8, NOT_TRUSTED),
    ([0.01], 0.5, 0.1, 5, "cannot be told from 5 targets."),
    ([None], 0.5, 0.1, 8, "cannot be told from 8 targets."),
    # Without metrics, the first of the fixed ranking is named.
    ([], 0.0, 0.1, 8, "by weighted Kendall; it puts b first. There is no metric to compare with it."),
]


def test_a_metric_is_trusted_if_it_beats_one_fixed_ranking() -> None:
    for p_values, mean, low, targets, verdict in VERDICTS:
        names = [f"metric {index}" for index in range(len(p_values))]
        value = {"weighted_kendall": {"mean": 0.5, "ci95": [low, 0.9]}}
        minus = {
            name: {"weighted_kendall": {"mean": mean, "p_value": p_value}}
            for name, p_value in zip(names, p_values, strict=True)
        }
        document = {
            "metrics": names,
            "targets": [*range(targets)],
            "rankers": {"mean_rank": value, **dict.fromkeys(names, value)},
            "best": {"weighted_kendall": {"metrics": names[:1], "tied": names[1:2]}},
            "minus_mean_rank": minus,
            "ranks": {"sources": {"a": {"mean": 2.0}, "b": {"mean": 1.5}}},
        }
        told = answer.of_audit(document)
        assert told.endswith(verdict)
        assert ("not significantly different: metric 1." in told) == (len(names) > 1)

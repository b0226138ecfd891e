"""The rows of one setting: scores, comparisons with the baseline, groups, ranks and neighbouring pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_letters
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.leaderboard.settings import Setting
from headstart.metrics.sample_efficiency.curves import required_correct
from headstart.metrics.sample_efficiency.resolution import (
    LEVEL,
    AllPairs,
    compare_all_pairs,
    maximal_groups,
    orderings_needed,
    rank_intervals,
)
from headstart.metrics.sample_efficiency.scores import (
    FEW_ORDERINGS,
    compare,
    holm,
    median_interval,
    restricted,
    sign_flip_p_values,
    t_interval,
)

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """A setting with what all of its numbers follow from, methods in the order of the leaderboard.

    Attributes:
        setting: The setting.
        order: Places of its methods, best first.
        names: Their names.
        samples: Samples to criterion, infinite where the limit came first, `[methods, orderings]`.
        onset: The same of the onset.
        restricted: Samples to criterion cut at the limit.
    """

    setting: Setting
    order: list[int]
    names: list[str]
    samples: Values
    onset: Values
    restricted: Values

    @property
    def protocol(self) -> dict[str, Any]:
        """What was fed, and the criterion."""
        return self.setting.protocol


def score_setting(setting: Setting) -> Scored:
    """Find samples to criterion, and order the methods by their restricted means; equals stay as they come."""
    samples, onset = setting.curves.samples_to_criterion()
    late = samples > setting.curves.limit
    samples, onset = (np.where(late, np.inf, each) for each in (samples, onset))
    cut = restricted(samples, setting.curves.limit)
    order = np.argsort(cut.mean(1), kind="stable").tolist()
    names = [setting.curves.methods[place] for place in order]
    return Scored(setting, order, names, samples[order], onset[order], cut[order])


def describe(scored: Scored, accuracy_at: Sequence[int]) -> dict[str, Any]:
    """Give a setting as it stands in `leaderboard.json`.

    Args:
        scored: The setting.
        accuracy_at: Numbers of samples at which accuracies are given.
    """
    setting, curves = scored.setting, scored.setting.curves
    protocol, orderings = scored.protocol, len(curves.orderings)
    compared = compare_all_pairs(scored.restricted)
    apart = compared.p_values < LEVEL
    sets = maximal_groups(apart)
    groups = [[scored.names[place] for place in group] for group in sets]
    methods = _scores(scored, accuracy_at)
    against = _against_baseline(scored)
    for place, (each, comparison, standing) in enumerate(
        zip(methods, against, _standings(scored, apart, sets), strict=True)
    ):
        methods[place] = {**each, **comparison, **standing}
    classes, largest = protocol.get("classes"), protocol.get("largest_class")
    return {
        "name": setting.name,
        **{key: protocol.get(key) for key in ("dataset", "backbone", "weights", "batch_size")},
        "folders": setting.folders,
        "classes": len(classes) if classes else None,
        "validation_size": curves.validation_size,
        "chance": 1 / len(classes) if classes else None,
        "majority": largest / curves.all_correct if largest else None,
        "threshold": curves.threshold,
        "consecutive": curves.consecutive,
        "measure": curves.measure,
        "baseline": setting.baseline,
        "orderings": curves.orderings.tolist(),
        "restricted_at": curves.limit,
        "remarks": [*setting.remarks, *_remarks(scored, groups, orderings)],
        "methods": methods,
        "pairs": _pairs(scored, compared),
        "not_told_apart": groups,
        "protocol": protocol,
    }


def _remarks(scored: Scored, groups: Sequence[Sequence[str]], orderings: int) -> list[str]:
    remarks = []
    if orderings < FEW_ORDERINGS:
        remarks.append(f"{orderings} orderings; at least {FEW_ORDERINGS} are recommended.")
    largest, curves = scored.protocol.get("largest_class"), scored.setting.curves
    if largest is not None and largest >= required_correct(curves.threshold, curves.all_correct):
        remarks.append("To predict the largest class alone meets the threshold, so that the numbers say nothing.")
    if not groups:
        remarks.append("There are too many sets of methods that are not told apart to name them.")
    if scored.setting.baseline is None:
        remarks.append("No method is called as the baseline, so that no improvement is given.")
    return remarks


def _scores(scored: Scored, accuracy_at: Sequence[int]) -> list[dict[str, Any]]:
    """Give what is known of each method by itself."""
    setting, curves = scored.setting, scored.setting.curves
    accuracies = {str(number): curves.accuracy_at(number).mean(1)[scored.order] for number in accuracy_at}
    return [
        {
            "name": name,
            "class": setting.provenances[name].get("class") or setting.provenances[name].get("class_path"),
            "tuned": setting.tuned.get(name),
            "orderings": len(samples),
            "reached": int(np.isfinite(samples).sum()),
            "median": number(np.median(samples)),
            "median_interval": interval(*median_interval(samples)),
            "restricted_mean": float(cut.mean()),
            "restricted_mean_interval": interval(*t_interval(cut)),
            "onset": number(np.median(onset)),
            "accuracy_at": {at: number(found[place]) for at, found in accuracies.items()},
        }
        for place, (name, samples, onset, cut) in enumerate(
            zip(scored.names, scored.samples, scored.onset, scored.restricted, strict=True)
        )
    ]


def _against_baseline(scored: Scored) -> list[dict[str, Any]]:
    """Compare every method but the baseline with it."""
    none = dict.fromkeys(("relative_improvement", "relative_improvement_interval", "p_value", "p_value_holm"))
    baseline = scored.setting.baseline
    if baseline is None:
        return [none] * len(scored.names)
    place = scored.names.index(baseline)
    others = [each for each in range(len(scored.names)) if each != place]
    found = [none] * len(scored.names)
    pairs = compare(scored.samples[place], scored.samples[others], scored.setting.curves.limit)
    for other, pair, p_holm in zip(others, pairs, holm([pair.p_value for pair in pairs]), strict=True):
        found[other] = {
            "relative_improvement": pair.relative_improvement,
            "relative_improvement_interval": interval_if_known(*pair.relative_interval),
            "p_value": pair.p_value,
            "p_value_holm": p_holm,
        }
    return found


def _standings(scored: Scored, apart: NDArray[np.bool_], sets: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """Give the letters of the sets that each method is in, and intervals of ranks."""
    letters = [""] * len(scored.names)
    for number, members in enumerate(sets):
        # Behind z come capitals, then numbers.
        letter = ascii_letters[number] if number < len(ascii_letters) else f" {number + 1}"
        for place in members:
            letters[place] += letter
    places = rank_intervals(scored.restricted.mean(1), apart).tolist()
    return [{"group": its, "rank_interval": ends} for its, ends in zip(letters, places, strict=True)]


def _pairs(scored: Scored, compared: AllPairs) -> list[dict[str, Any]]:
    """Compare neighbours."""
    differences, adjusted = np.diff(scored.restricted, axis=0).T, compared.p_values
    pairs = _compare_neighbours(differences)
    return [
        {
            "better": scored.names[place],
            "worse": scored.names[place + 1],
            **pair,
            "p_value_adjusted": float(adjusted[place, place + 1]),
            "told_apart": bool(adjusted[place, place + 1] < LEVEL),
            "orderings_needed": needed,
        }
        for place, (pair, needed) in enumerate(zip(pairs, orderings_needed(differences, compared.levels), strict=True))
    ]


def _compare_neighbours(differences: Values) -> list[dict[str, Any]]:
    """Give mean, interval and p value of differences `[orderings, pairs]`."""
    p_values = sign_flip_p_values(differences).tolist()
    return [
        {"difference": float(each.mean()), "interval": interval(*t_interval(each)), "p_value": p_value}
        for each, p_value in zip(differences.T, p_values, strict=True)
    ]


def number(value: float | np.floating[Any]) -> float | None:
    """Give a number as JSON can hold it."""
    return float(value) if np.isfinite(value) else None


def interval(low: float, high: float) -> list[float | None]:
    """Give an interval as JSON can hold it, with None for an end that is infinite or unknown."""
    return [number(low), number(high)]


def interval_if_known(low: float, high: float) -> list[float | None] | None:
    """Give an interval as JSON can hold it, or None where neither end is known."""
    found = interval(low, high)
    return None if found == [None, None] else found

"""Entries of one setting: scores, comparisons with the baseline, groups, ranks and neighbouring pairs."""

from collections.abc import Sequence
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
    finite,
    holm,
    median_interval,
    sign_flip_p_values,
    t_interval,
)


def describe(setting: Setting, accuracy_at: Sequence[int]) -> dict[str, Any]:
    """Return a setting as it stands in `leaderboard.json`.

    Args:
        setting: The setting.
        accuracy_at: Numbers of samples at which accuracies are reported.
    """
    curves, protocol, names = setting.curves, setting.protocol, setting.names
    compared = compare_all_pairs(setting.restricted)
    apart = compared.p_values < LEVEL
    indices = maximal_groups(apart)
    groups = [[names[index] for index in group] for group in indices]
    entries = zip(
        _scores(setting, accuracy_at), _against_baseline(setting), _standings(setting, apart, indices), strict=True
    )

    classes, largest = protocol.get("classes"), protocol.get("largest_class")
    return {
        "name": setting.name,
        **{key: protocol.get(key) for key in ("dataset", "backbone", "weights", "batch_size")},
        "folders": setting.folders,
        # Values are None where the protocol lacks them.
        "classes": len(classes) if classes else None,
        "validation_size": curves.validation_size,
        "chance": 1 / len(classes) if classes else None,
        "majority": largest / curves.all_correct if largest else None,
        # The criterion and the traces.
        "threshold": curves.threshold,
        "consecutive": curves.consecutive,
        "measure": curves.measure,
        "baseline": setting.baseline,
        "orderings": curves.orderings.tolist(),
        "restricted_at": curves.limit,
        # The results.
        "remarks": [*setting.remarks, *_remarks(setting, groups)],
        "methods": [{**scores, **comparison, **standing} for scores, comparison, standing in entries],
        "pairs": _pairs(setting, compared),
        "not_told_apart": groups,
        "protocol": protocol,
    }


def _remarks(setting: Setting, groups: Sequence[Sequence[str]]) -> list[str]:
    remarks, curves = [], setting.curves
    if len(curves.orderings) < FEW_ORDERINGS:
        remarks.append(f"{len(curves.orderings)} orderings; at least {FEW_ORDERINGS} are recommended.")
    largest = setting.protocol.get("largest_class")
    if largest is not None and largest >= required_correct(curves.threshold, curves.all_correct):
        remarks.append("To predict the largest class alone meets the threshold, so that the numbers say nothing.")
    if not groups:
        remarks.append("There are too many sets of methods that are not told apart to name them.")
    if setting.baseline is None:
        remarks.append("No method is called as the baseline, so that no improvement is given.")
    return remarks


def _scores(setting: Setting, accuracy_at: Sequence[int]) -> list[dict[str, Any]]:
    """Return the scores of each method by itself."""
    accuracies = {str(at): setting.curves.accuracy_at(at).mean(1)[setting.order] for at in accuracy_at}
    scores = []

    for index, (name, samples, onset, cut) in enumerate(
        zip(setting.names, *setting.streaks, setting.restricted, strict=True)
    ):
        provenance = setting.provenances[name]
        scores.append(
            {
                "name": name,
                "class": provenance.get("class") or provenance.get("class_path"),
                "tuned": setting.tuned.get(name),
                "orderings": len(samples),
                "reached": int(np.isfinite(samples).sum()),
                # Censored samples are infinite, so that the median may be unknown.
                "median": finite(np.median(samples)),
                "median_interval": interval(*median_interval(samples)),
                "restricted_mean": float(cut.mean()),
                "restricted_mean_interval": interval(*t_interval(cut)),
                "onset": finite(np.median(onset)),
                "accuracy_at": {at: finite(accuracy[index]) for at, accuracy in accuracies.items()},
            }
        )
    return scores


def _against_baseline(setting: Setting) -> list[dict[str, Any]]:
    """Return the comparison of every method with the baseline, None throughout for the baseline itself."""
    none = dict.fromkeys(("relative_improvement", "relative_improvement_interval", "p_value", "p_value_holm"))
    comparisons = [none] * len(setting.names)
    if setting.baseline is None:
        return comparisons

    # The baseline's own entry stays None.
    baseline, samples = setting.names.index(setting.baseline), setting.streaks[0]
    others = [index for index in range(len(samples)) if index != baseline]

    pairs = compare(samples[baseline], samples[others], setting.curves.limit)
    for index, pair, p_holm in zip(others, pairs, holm([pair.p_value for pair in pairs]), strict=True):
        comparisons[index] = {
            "relative_improvement": pair.relative_improvement,
            "relative_improvement_interval": interval_if_known(*pair.relative_interval),
            "p_value": pair.p_value,
            "p_value_holm": p_holm,
        }
    return comparisons


def _standings(setting: Setting, apart: NDArray[np.bool_], groups: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """Return the letters of each method's groups, and its interval of ranks."""
    ranks = rank_intervals(setting.restricted.mean(1), apart).tolist()
    standings: list[dict[str, Any]] = [{"group": "", "rank_interval": ends} for ends in ranks]
    for number, group in enumerate(groups):
        # After z come capitals, then numbers.
        letter = ascii_letters[number] if number < len(ascii_letters) else f" {number + 1}"
        for index in group:
            standings[index]["group"] += letter
    return standings


def _pairs(setting: Setting, compared: AllPairs) -> list[dict[str, Any]]:
    """Return the comparisons of neighbours."""
    differences = np.diff(setting.restricted, axis=0).T
    p_values = sign_flip_p_values(differences).tolist()
    adjusted = np.diagonal(compared.p_values, 1).tolist()
    needed = orderings_needed(differences, compared.levels)

    return [
        {
            "better": setting.names[index],
            "worse": setting.names[index + 1],
            "difference": float(difference.mean()),
            "interval": interval(*t_interval(difference)),
            "p_value": p_values[index],
            "p_value_adjusted": adjusted[index],
            "told_apart": adjusted[index] < LEVEL,
            "orderings_needed": needed[index],
        }
        for index, difference in enumerate(differences.T)
    ]


def interval(low: float, high: float) -> list[float | None]:
    """Return an interval as JSON can hold it, with None for an end that is infinite or unknown."""
    return [finite(low), finite(high)]


def interval_if_known(low: float, high: float) -> list[float | None] | None:
    """Return an interval as JSON can hold it, or None where neither end is known."""
    ends = interval(low, high)
    return None if ends == [None, None] else ends

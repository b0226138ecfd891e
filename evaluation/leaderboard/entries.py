"""Entries of one setting: scores, comparisons with the baseline, groups, ranks and neighbouring pairs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from headstart.evaluation.leaderboard.differences import Tests
from headstart.evaluation.leaderboard.settings import Setting
from headstart.metrics.sample_efficiency.resolution import AllPairs, group_letters, maximal_groups, rank_intervals
from headstart.metrics.sample_efficiency.result_warnings import interval_warnings
from headstart.metrics.sample_efficiency.scores import (
    FEW_ORDERINGS,
    compare,
    finite,
    finite_ends,
    holm,
    median_interval,
    t_interval,
)


def describe(setting: Setting, tests: Tests, accuracy_at: Sequence[int]) -> dict[str, Any]:
    """Return a setting as it stands in `leaderboard.json`.

    Args:
        setting: The setting.
        tests: Tests of its methods.
        accuracy_at: Numbers of samples at which accuracies are reported.
    """
    curves, protocol, names = setting.curves, setting.protocol, setting.names
    indices = maximal_groups(tests.all_pairs.significant)
    groups = [[names[index] for index in group] for group in indices]
    warnings = [*setting.warnings, *interval_warnings(names, setting.streaks[0], curves.floor)]
    ranks = rank_intervals(setting.restricted.mean(1), tests.all_pairs.significant).tolist()
    comparisons = _against_baseline(setting, tests.baseline)
    entries = zip(_scores(setting, accuracy_at), comparisons, standings(ranks, indices), strict=True)

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
        "warnings": warnings,
        "is_pooled": setting.is_pooled,
        "remarks": [*setting.remarks, *_remarks(setting, groups), *_undecided(setting.names, tests.all_pairs)],
        "methods": [{**scores, **comparison, **standing} for scores, comparison, standing in entries],
        "pairs": _pairs(setting, tests),
        "not_told_apart": groups,
        "tied_for_first": [name for name, (lowest, _) in zip(names, ranks, strict=True) if lowest == 1],
        "protocol": protocol,
    }


def _remarks(setting: Setting, groups: Sequence[Sequence[str]]) -> list[str]:
    remarks, curves = [], setting.curves
    if len(curves.orderings) < FEW_ORDERINGS:
        remarks.append(f"{len(curves.orderings)} orderings; at least {FEW_ORDERINGS} are recommended.")
    if not groups:
        remarks.append("There are too many sets of methods without a significant difference to name them.")
    if setting.baseline is None:
        remarks.append("No method has the name of the baseline, so no improvement is reported.")
    return remarks


def _undecided(names: Sequence[str], compared: AllPairs) -> list[str]:
    """Return the remark on pairs whose p value is too close to the level for the drawn sign patterns."""
    pairs = [
        f"{names[one]} and {names[other]} (p {compared.p_values[one, other]:.4f})"
        for one, other in np.argwhere(np.triu(compared.undecided)).tolist()
    ]
    undecided = "UNDECIDED, and counted as not significant, because p is too close to 5 % for the drawn sign patterns"
    return [f"{undecided}: {', '.join(pairs)}."] * bool(pairs)


def _scores(setting: Setting, accuracy_at: Sequence[int]) -> list[dict[str, Any]]:
    """Return the scores of each method by itself."""
    accuracies = {str(at): setting.curves.accuracy_at(at).mean(1)[setting.order] for at in accuracy_at}
    scores = []

    for index, (name, samples, onset, cut) in enumerate(
        zip(setting.names, *setting.streaks, setting.restricted, strict=True)
    ):
        method_key = setting.method_keys[name]
        scores.append(
            {
                "name": name,
                "class": method_key.get("class") or method_key.get("class_path"),
                "tuned": setting.tuned.get(name),
                "orderings": len(samples),
                "reached": int(np.isfinite(samples).sum()),
                # Censored samples are infinite, so that the median may be unknown.
                "median": finite(np.median(samples)),
                "median_interval": finite_ends(median_interval(samples)),
                "restricted_mean": float(cut.mean()),
                "restricted_mean_interval": finite_ends(t_interval(cut)),
                "onset": finite(np.median(onset)),
                "accuracy_at": {at: finite(accuracy[index]) for at, accuracy in accuracies.items()},
            }
        )
    return scores


def _against_baseline(setting: Setting, p_values: Sequence[float]) -> list[dict[str, Any]]:
    """Return the comparison of every method with the baseline, None throughout for the baseline itself.

    Args:
        setting: The setting.
        p_values: p value of every method, `[methods]`; empty without a baseline.
    """
    none = dict.fromkeys(("relative_improvement", "relative_improvement_interval", "p_value", "p_value_holm"))
    comparisons = [none] * len(setting.names)
    if setting.baseline is None:
        return comparisons

    # The baseline's own entry stays None.
    baseline, samples = setting.names.index(setting.baseline), setting.streaks[0]
    others = [index for index in range(len(samples)) if index != baseline]

    for index, p_holm in zip(others, holm([p_values[index] for index in others]), strict=True):
        pair = compare(samples[baseline], samples[index], setting.curves.limit)
        comparisons[index] = {
            "relative_improvement": pair.relative_improvement,
            "relative_improvement_interval": interval_if_known(*pair.relative_interval),
            "p_value": p_values[index],
            "p_value_holm": p_holm,
        }
    return comparisons


def standings(ranks: Sequence[Sequence[int]], groups: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """Return the letters of each method's groups, and its interval of ranks."""
    letters = group_letters(groups, len(ranks))
    return [{"group": own, "rank_interval": ends} for own, ends in zip(letters, ranks, strict=True)]


def _pairs(setting: Setting, tests: Tests) -> list[dict[str, Any]]:
    """Return the comparisons of neighbours."""
    matrices = tests.all_pairs.p_values, tests.all_pairs.significant
    adjusted, significant = (np.diagonal(each, 1).tolist() for each in matrices)

    return [
        {
            "better": setting.names[index],
            "worse": setting.names[index + 1],
            "difference": float(difference.mean()),
            "interval": finite_ends(t_interval(difference)),
            "p_value": tests.neighbours[index],
            "p_value_adjusted": adjusted[index],
            "told_apart": significant[index],
            "orderings_needed": tests.orderings_needed[index],
        }
        for index, difference in enumerate(np.diff(setting.restricted, axis=0))
    ]


def interval_if_known(low: float, high: float) -> list[float | None] | None:
    """Return an interval as JSON can hold it, or None where neither end is known."""
    ends = finite_ends((low, high))
    return None if ends == [None, None] else ends

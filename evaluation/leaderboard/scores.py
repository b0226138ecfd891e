"""Scores of the methods of each setting: samples to criterion, relative improvement, ranks, ties and resolution."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.leaderboard.settings import Setting
from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.sample_efficiency import resolution, scores
from headstart.metrics.sample_efficiency.result_warnings import interval_warnings
from headstart.metrics.sample_efficiency.scores import finite, finite_ends, t_interval

COMPARISON = ("relative_improvement", "relative_improvement_interval", "p_value", "p_value_holm")
# Dictionaries as they stand in `leaderboard.json`.
Entries = list[dict[str, Any]]


class Tests(NamedTuple):
    """Tests of the differences between the methods of one setting, in the order of the leaderboard.

    Attributes:
        all_pairs: Tests of all pairs.
        neighbours: p value of each method and the next one, `[methods - 1]`.
        baseline: p value of the baseline and each method, 1 for the baseline itself, `[methods]`; empty without one.
        orderings_needed: Orderings that each method and the next one need, as `orderings_needed` returns them.
    """

    all_pairs: resolution.AllPairs
    neighbours: list[float]
    baseline: list[float]
    orderings_needed: list[int | None]


def compare_methods(settings: Sequence[Setting]) -> list[Tests]:
    """Test the differences between the methods of each setting; settings of as many orderings share their draws."""
    tables = [setting.restricted for setting in settings]
    all_pairs = resolution.compare_all_pairs(tables)
    neighbours = [np.diff(table, axis=0).T for table in tables]
    both = [np.hstack([own, _from_baseline(each)]) for own, each in zip(neighbours, settings, strict=True)]

    tests = []
    for pairs, differences, p_values in zip(all_pairs, neighbours, _sign_flips(both), strict=True):
        own, of_baseline = np.split(p_values, [differences.shape[1]])
        needed = resolution.orderings_needed(differences, pairs.levels)
        tests.append(Tests(pairs, own.tolist(), of_baseline.tolist(), needed))
    return tests


def _from_baseline(setting: Setting) -> Floats:
    """Return the differences of all methods from the baseline, `[orderings, methods]`; no columns without one."""
    table = setting.restricted.T
    if setting.baseline is None:
        return table[:, :0]
    return np.asarray(table[:, [setting.names.index(setting.baseline)]] - table)


def _sign_flips(tables: Sequence[Floats]) -> list[Floats]:
    """Return the p values of the differences in each table, `[orderings, differences]`."""
    p_values = [np.empty(0)] * len(tables)
    for indices in grouped((len(table), index) for index, table in enumerate(tables)).values():
        ends = np.cumsum([tables[index].shape[1] for index in indices])
        together = scores.sign_flip_p_values(np.hstack([tables[index] for index in indices]))
        for index, own in zip(indices, np.split(together, ends[:-1]), strict=True):
            p_values[index] = own
    return p_values


def describe_setting(setting: Setting, tests: Tests, accuracy_at: Sequence[int]) -> dict[str, Any]:
    """Return a setting as it stands in `leaderboard.json`.

    Args:
        setting: The setting.
        tests: Tests of its methods.
        accuracy_at: Numbers of samples at which accuracies are reported.
    """
    curves, protocol, names = setting.curves, setting.protocol, setting.names
    classes, largest = protocol.get("classes"), protocol.get("largest_class")
    groups, standings = ties(setting.restricted.mean(1), tests.all_pairs.significant)
    entries = zip(_samples_to_criterion(setting, accuracy_at), _improvements(setting, tests), standings, strict=True)
    named_groups = [[names[index] for index in group] for group in groups]

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
        "warnings": [*setting.warnings, *interval_warnings(names, setting.streaks[0], curves.floor)],
        "remarks": [*setting.remarks, *_remarks(setting, groups, tests.all_pairs)],
        "methods": [{**own, **comparison, **standing} for own, comparison, standing in entries],
        "pairs": _neighbours(setting, tests),
        "not_told_apart": named_groups,
        "tied_for_first": [name for name, each in zip(names, standings, strict=True) if each["rank_interval"][0] == 1],
        "protocol": protocol,
    }


def _remarks(setting: Setting, groups: Sequence[Sequence[int]], pairs: resolution.AllPairs) -> list[str]:
    count, remarks = len(setting.curves.orderings), []
    if count < scores.FEW_ORDERINGS:
        remarks.append(f"{count} orderings; at least {scores.FEW_ORDERINGS} are recommended.")
    if not groups:
        remarks.append("There are too many sets of methods without a significant difference to name them.")
    if setting.baseline is None:
        remarks.append("No method has the name of the baseline, so no improvement is reported.")

    undecided = [
        f"{setting.names[one]} and {setting.names[other]} (p {pairs.p_values[one, other]:.4f})"
        for one, other in np.argwhere(np.triu(pairs.undecided)).tolist()
    ]
    if undecided:
        why = "counted as not significant, because p is too close to 5 % for the drawn sign patterns"
        remarks.append(f"UNDECIDED, and {why}: {', '.join(undecided)}.")
    return remarks


def _samples_to_criterion(setting: Setting, accuracy_at: Sequence[int]) -> Entries:
    """Return the scores of each method by itself."""
    keys = [setting.method_keys[name] for name in setting.names]
    accuracies = {str(at): setting.curves.accuracy_at(at).mean(1)[setting.order] for at in accuracy_at}

    return [
        {
            "name": name,
            "class": keys[index].get("class") or keys[index].get("class_path"),
            "tuned": setting.tuned.get(name),
            "orderings": len(samples),
            "reached": int(np.isfinite(samples).sum()),
            # Censored samples are infinite, so that the median may be unknown.
            "median": finite(np.median(samples)),
            "median_interval": finite_ends(scores.median_interval(samples)),
            "restricted_mean": float(cut.mean()),
            "restricted_mean_interval": finite_ends(t_interval(cut)),
            "onset": finite(np.median(onset)),
            "accuracy_at": {at: finite(accuracy[index]) for at, accuracy in accuracies.items()},
        }
        for index, (name, samples, onset, cut) in enumerate(
            zip(setting.names, *setting.streaks, setting.restricted, strict=True)
        )
    ]


def _improvements(setting: Setting, tests: Tests) -> Entries:
    """Return the comparison of every method with the baseline, None throughout for the baseline itself."""
    comparisons = [dict.fromkeys(COMPARISON) for _ in setting.names]
    if setting.baseline is None:
        return comparisons

    baseline, samples = setting.names.index(setting.baseline), setting.restricted
    others = [index for index in range(len(samples)) if index != baseline]
    p_values = [tests.baseline[index] for index in others]
    for index, p_value, p_holm in zip(others, p_values, scores.holm(p_values), strict=True):
        improvement, ends = scores.relative_improvement(samples[baseline], samples[index])
        values = (improvement, _interval_if_known(*ends), p_value, p_holm)
        comparisons[index] = dict(zip(COMPARISON, values, strict=True))
    return comparisons


def ties(means: Floats, significant: Flags) -> tuple[list[list[int]], Entries]:
    """Return the largest groups without a significant difference, and letters and interval of ranks of each method.

    Args:
        means: Means, lower is better, `[methods]`.
        significant: Whether pairs differ significantly, `[methods, methods]`.
    """
    groups = resolution.maximal_groups(significant)
    letters = resolution.group_letters(groups, len(means))
    ranks = resolution.rank_intervals(means, significant).tolist()
    return groups, [{"group": own, "rank_interval": ends} for own, ends in zip(letters, ranks, strict=True)]


def _neighbours(setting: Setting, tests: Tests) -> Entries:
    """Return the comparisons of each method with the next one."""
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


def _interval_if_known(low: float, high: float) -> list[float | None] | None:
    """Return an interval as JSON can hold it, or None where neither end is known."""
    ends = finite_ends((low, high))
    return None if ends == [None, None] else ends

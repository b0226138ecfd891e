"""Methods over several settings: interquartile means, ranks and probabilities of improvement."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from headstart.evaluation.leaderboard.entries import interval
from headstart.evaluation.leaderboard.settings import (
    CHOICES,
    DATA_SET,
    TUNED,
    Setting,
    Values,
    differing_within,
    values_of,
)
from headstart.evaluation.protocol_differences import describe_differences
from headstart.metrics.ranking.aggregates import (
    bootstrap_counts,
    interquartile_means,
    percentile_interval,
    probabilities_of_improvement,
    ranks,
)
from headstart.metrics.sample_efficiency.scores import t_interval

# The keys of a setting that is compared with others. A file of weights is the same in every folder.
OVER = (*DATA_SET, "backbone", "weights_sha256")


def describe_over_settings(settings: Sequence[Setting]) -> tuple[dict[str, Any] | None, list[str]]:
    """Return `over_settings` as it stands in `leaderboard.json`, or None with remarks on the reason."""
    chosen, remarks = choose_comparable(settings)
    methods, more = common_methods(chosen)
    remarks += more
    if len(chosen) < 2 or len(methods) < 2:
        few = f"Nothing is compared over settings: {len(chosen)} of them, with {len(methods)} methods in common."
        return None, [*remarks, few]

    values = restricted_of(chosen, methods)
    resamples = [bootstrap_counts(each.shape[1], stratum) for stratum, each in enumerate(values)]
    means, ends = relative_interquartile_means(values, resamples)
    method_ranks = np.stack([ranks(each.mean(1)) for each in values], axis=1)
    data_sets = [values_of(each.protocol, DATA_SET) for each in chosen]

    order = np.argsort(means, kind="stable")
    entries = [
        {
            "name": methods[index],
            "tuned": any(each.tuned.get(methods[index]) == TUNED for each in chosen),
            "interquartile_mean": float(means[index]),
            "interquartile_mean_interval": interval(*ends[:, index]),
            **_mean_rank(method_ranks[index], data_sets, len(methods)),
            "ranks": method_ranks[index].tolist(),
        }
        for index in order
    ]

    improvements = _improvements([methods[index] for index in order], [each[order] for each in values], resamples)

    return {
        "settings": [each.name for each in chosen],
        "remarks": remarks,
        "methods": entries,
        "probability_of_improvement": improvements,
    }, []


def choose_comparable(settings: Sequence[Setting]) -> tuple[list[Setting], list[str]]:
    """Choose one setting of each data set and backbone, with remarks on the others and on further differences."""
    chosen, kind = one_of_each(settings, OVER)
    names = {each.name for each in chosen}
    left_out = [each.name for each in settings if each.name not in names]
    remarks = []
    if left_out:
        others = f"others of the same data sets and backbones are left out: {'; '.join(left_out)}"
        remarks.append(f"Over settings of {kind}; {others}. --where chooses them.")
    choices = [{key: each.protocol.get(key) for key in CHOICES} for each in chosen]
    differing = ", ".join(f"{key} ({values})" for key, values in describe_differences(choices).items())
    remarks += [f"The settings differ also in {differing}."] * bool(differing)
    return chosen, remarks


def one_of_each(settings: Sequence[Setting], keys: Sequence[str]) -> tuple[list[Setting], str]:
    """Choose one setting of those that agree in some keys of their protocols.

    The kind of a setting are the values in which it differs from those that it agrees with. The most frequent kind is
    chosen; where none of several settings is of that kind, the first one is.

    Args:
        settings: The settings.
        keys: The keys.

    Returns:
        The chosen settings, and a description of the kind.
    """
    groups: dict[tuple[str, ...], list[Setting]] = {}
    for each in settings:
        groups.setdefault(values_of(each.protocol, keys), []).append(each)
    differing = differing_within([each.protocol for each in settings], keys)
    kinds = {each.name: values_of(each.protocol, differing) for each in settings}
    in_groups = Counter(kinds[each.name] for group in groups.values() if len(group) > 1 for each in group)
    in_all = Counter(kinds.values())
    frequent = max(in_groups, key=lambda kind: (in_groups[kind], in_all[kind]), default=())

    chosen, without = [], []
    for group in groups.values():
        of_kind = [each for each in group if kinds[each.name] == frequent]
        chosen.append((of_kind or group)[0])
        without += [group[0].name] * (len(group) > 1 and not of_kind)
    described = ", ".join(f"{key} {value}" for key, value in zip(differing, frequent, strict=True)) or "one stream each"
    return chosen, described + f" (where there is none such, of {'; '.join(without)})" * bool(without)


def common_methods(settings: Sequence[Setting]) -> tuple[list[str], list[str]]:
    """Return the methods that are in all settings, and the same in all, with remarks on the others."""
    common, missing, changed = [], [], []
    for name in dict.fromkeys(name for each in settings for name in each.names):
        # Data sets may have limits of their own.
        kinds = [{**each.provenances[name], "max_samples": None} for each in settings if name in each.names]
        if len(kinds) < len(settings):
            missing.append(name)
        elif any(kind != kinds[0] for kind in kinds):
            changed.append(name)
        else:
            common.append(name)
    remarks = [f"Not in all settings, and left out: {', '.join(missing)}."] * bool(missing)
    remarks += [f"Not the same method in all settings, and left out: {', '.join(changed)}."] * bool(changed)
    return common, remarks


def restricted_of(settings: Sequence[Setting], methods: Sequence[str]) -> list[Values]:
    """Return the restricted samples of some methods in each setting, `[methods, orderings]`."""
    return [each.restricted[[each.names.index(name) for name in methods]] for each in settings]


def relative_interquartile_means(values: Sequence[Values], resamples: list[Values]) -> tuple[Values, Values]:
    """Return the interquartile means of samples over the geometric mean of all methods in the ordering, with intervals.

    A factor of two then counts the same for 20 samples and for 200, and a run is trimmed if it is unusual among those
    of its ordering, not because its ordering is hard. Orderings are resampled, each with its own mean, so that the
    intervals belong to the estimate.

    Args:
        values: Restricted samples to criterion of each setting, `[methods, orderings]`.
        resamples: Counts of each ordering in every resample of each setting, `[resamples, orderings]`.

    Returns:
        The means, `[methods]`, and the ends of their intervals, `[2, methods]`.
    """
    logarithms = [np.log(each) - np.log(each).mean(0) for each in values]
    [means] = np.exp(interquartile_means(logarithms, [np.ones((1, each.shape[1])) for each in values]))
    return means, _ends(np.exp(interquartile_means(logarithms, resamples)), values)


def _ends(resampled: Values, values: Sequence[Values]) -> Values:
    """Return percentile intervals; NaN if a setting has a single ordering, which cannot be resampled."""
    has_single = any(each.shape[1] < 2 for each in values)
    return percentile_interval(resampled) * (np.nan if has_single else 1)


def _mean_rank(values: Values, data_sets: Sequence[tuple[str, ...]], methods: int) -> dict[str, Any]:
    """Return the mean over data sets of a method's ranks, with the t interval over these.

    Settings of one data set are alike and count as one; if there is only one data set, each setting counts.
    """
    names = dict.fromkeys(data_sets)
    if len(names) > 1:
        values = np.array([values[[each == name for each in data_sets]].mean() for name in names])
    low, high = t_interval(values)
    return {"mean_rank": float(values.mean()), "mean_rank_interval": interval(max(low, 1.0), min(high, float(methods)))}


def _improvements(
    methods: Sequence[str], values: Sequence[Values], resamples: Sequence[Values]
) -> list[dict[str, Any]]:
    """Return the mean probability over settings that one method needs fewer samples than another, of all pairs."""
    means = np.mean([probabilities_of_improvement(v, np.ones((1, v.shape[1])))[0] for v in values], axis=0)
    resampled = np.zeros((len(resamples[0]), len(methods), len(methods)))
    for v, counts in zip(values, resamples, strict=True):
        resampled += probabilities_of_improvement(v, counts) / len(values)
    low, high = _ends(resampled, values)
    return [
        {
            "better": methods[first],
            "worse": methods[second],
            "probability": float(means[first, second]),
            "interval": interval(low[first, second], high[first, second]),
        }
        for first, second in combinations(range(len(methods)), 2)
    ]

"""Methods over several settings: interquartile means, ranks and probabilities of improvement."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.leaderboard.settings import CHOICES, DATA_SET, TUNED, Setting, differing_within, values_of
from headstart.evaluation.protocol_differences import describe_differences
from headstart.metrics.arrays import Floats
from headstart.metrics.ranking import aggregates
from headstart.metrics.sample_efficiency.scores import finite_ends, t_interval

# The keys of a setting that is compared with others. A file of weights is the same in every folder.
NETWORK = ("backbone", "weights_sha256")
OVER = (*DATA_SET, *NETWORK)
# Interquartile means that print as the same number, and the share of runs at the floor or the limit that is warned of.
SAME, MANY_AT_AN_END = 0.005, 0.5


def restricted_frame(settings: Sequence[Setting], methods: Sequence[str]) -> pd.DataFrame:
    """Return samples to criterion cut at the limit: a line for each setting and ordering, a column for each method."""
    values = [setting.restricted[[setting.names.index(name) for name in methods]].T for setting in settings]
    names = np.repeat([setting.name for setting in settings], [len(table) for table in values])
    return pd.DataFrame(np.concatenate(values), pd.Index(names, name="setting"), [*methods])


def describe_over_settings(settings: Sequence[Setting]) -> tuple[dict[str, Any] | None, list[str]]:
    """Return `over_settings` as it stands in `leaderboard.json`, or None with remarks on the reason."""
    comparable, remarks = choose_comparable(settings)
    if not comparable:
        return None, remarks

    methods, more = common_methods(comparable)
    remarks += more
    if len(comparable) < 2 or len(methods) < 2:
        counts = f"number of settings: {len(comparable)}, of common methods: {len(methods)}"
        return None, [*remarks, f"Settings are not compared: this needs two with two common methods ({counts})."]

    by_setting = restricted_frame(comparable, methods).groupby(level="setting", sort=False)
    values = [np.ascontiguousarray(own.to_numpy().T) for _, own in by_setting]
    remarks += _warn_of_ends(comparable, values)
    resamples = aggregates.bootstrap_counts([table.shape[1] for table in values])
    means, ends = relative_interquartile_means(values, resamples)

    if max(np.ptp(means), np.nanmax(np.abs(ends - means), initial=0)) < SAME:
        return None, [*remarks, "Nothing is compared over settings: all methods are equal in most orderings."]

    order, ranks = np.argsort(means, kind="stable").tolist(), by_setting.mean().rank(axis=1)
    data_sets = pd.Index([values_of(setting.protocol, DATA_SET) for setting in comparable])
    # Settings of one data set are alike and count as one; if there is only one data set, each setting counts.
    of_units = ranks.groupby(data_sets.factorize()[0]).mean() if data_sets.nunique() > 1 else ranks

    entries = [
        {
            "name": methods[index],
            "tuned": any(setting.tuned.get(methods[index]) == TUNED for setting in comparable),
            "interquartile_mean": float(means[index]),
            "interquartile_mean_interval": finite_ends(ends[:, index]),
            "mean_rank": float(of_units[methods[index]].mean()),
            "mean_rank_interval": _rank_interval(of_units[methods[index]].to_numpy(), len(methods)),
            "ranks": ranks[methods[index]].tolist(),
        }
        for index in order
    ]

    return {
        "settings": [setting.name for setting in comparable],
        "of": describe_variety(comparable),
        "remarks": remarks,
        "methods": entries,
        "probability_of_improvement": _improvements([methods[at] for at in order], [table[order] for table in values]),
    }, []


def _rank_interval(ranks: Floats, methods: int) -> list[float | None]:
    """Return the t interval of a mean rank; equal ranks have none, because nothing is known of their spread."""
    ends = t_interval(ranks) if np.ptp(ranks) else (np.nan, np.nan)
    return finite_ends(np.clip(ends, 1, methods))


def _warn_of_ends(settings: Sequence[Setting], values: Sequence[Floats]) -> list[str]:
    """Return the warning of settings in which most runs cannot differ, because they end at the floor or the limit."""
    names = [
        each.name
        for each, own in zip(settings, values, strict=True)
        if ((own <= each.curves.floor) | (own >= each.curves.limit)).mean() >= MANY_AT_AN_END
    ]
    warning = "WARNING: half of the runs or more are at the criterion's floor or censored, which hides differences, in"
    return [f"{warning} {'; '.join(names)}."] * bool(names)


def describe_variety(settings: Sequence[Setting]) -> str:
    """Return the numbers of settings, data sets and networks."""
    data_sets = {values_of(setting.protocol, DATA_SET) for setting in settings}
    networks = {values_of(setting.protocol, NETWORK) for setting in settings}
    counts = {"data set": len(data_sets), "network": len(networks)}
    listed = ", ".join(f"{count} {noun}{'s' * (count > 1)}" for noun, count in counts.items())
    return f"{len(settings)} setting{'s' * (len(settings) > 1)} ({listed})"


def choose_comparable(settings: Sequence[Setting]) -> tuple[list[Setting], list[str]]:
    """Choose one setting of each data set and backbone, with remarks on the others and on further differences.

    Where most settings would be left out, as in a sweep over batch sizes, none is chosen.
    """
    comparable, kind = one_of_each(settings, OVER)
    if settings and 2 * len(comparable) <= len(settings):
        few = f"{len(settings)} settings are of only {len(comparable)} pair{'s' * (len(comparable) > 1)} of "
        few += "a data set and a network"
        keys = ", ".join(differing_within([setting.protocol for setting in settings], OVER))
        return [], [f"Nothing is compared over settings: {few}, and differ in {keys}. --where chooses among them."]

    names, remarks = {setting.name for setting in comparable}, []
    left_out = [setting.name for setting in settings if setting.name not in names]
    if left_out:
        others = f"others of the same data sets and backbones are left out: {'; '.join(left_out)}"
        remarks.append(f"Over settings of {kind}; {others}. --where chooses them.")
    choices = [{key: setting.protocol.get(key) for key in CHOICES} for setting in comparable]
    differing = ", ".join(f"{key} ({values})" for key, values in describe_differences(choices).items())
    remarks += [f"The settings differ also in {differing}."] * bool(differing)
    return comparable, remarks


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
    groups = grouped((values_of(setting.protocol, keys), setting) for setting in settings)
    differing = differing_within([setting.protocol for setting in settings], keys)
    kinds = {setting.name: values_of(setting.protocol, differing) for setting in settings}
    in_groups = Counter(kinds[setting.name] for group in groups.values() if len(group) > 1 for setting in group)
    in_all = Counter(kinds.values())
    frequent = max(in_groups, key=lambda kind: (in_groups[kind], in_all[kind]), default=())

    representatives, without = [], []
    for group in groups.values():
        of_kind = [setting for setting in group if kinds[setting.name] == frequent]
        representatives.append((of_kind or group)[0])
        without += [group[0].name] * (len(group) > 1 and not of_kind)
    described = ", ".join(f"{key} {value}" for key, value in zip(differing, frequent, strict=True)) or "one stream each"
    return representatives, described + f" (where there is none such, of {'; '.join(without)})" * bool(without)


def common_methods(settings: Sequence[Setting]) -> tuple[list[str], list[str]]:
    """Return the methods that are in all settings, and the same in all, with remarks on the others."""
    common, missing, changed = [], [], []
    for name in dict.fromkeys(name for setting in settings for name in setting.names):
        # Data sets may have limits of their own.
        kinds = [{**setting.method_keys[name], "max_samples": None} for setting in settings if name in setting.names]
        if len(kinds) < len(settings):
            missing.append(name)
        elif any(kind != kinds[0] for kind in kinds):
            changed.append(name)
        else:
            common.append(name)
    remarks = [f"Not in all settings, and left out: {', '.join(missing)}."] * bool(missing)
    remarks += [f"Not the same method in all settings, and left out: {', '.join(changed)}."] * bool(changed)
    return common, remarks


def relative_interquartile_means(
    values: Sequence[Floats], resamples: Iterable[aggregates.Counts]
) -> tuple[Floats, Floats]:
    """Return the interquartile means of samples over the geometric mean of all methods in the ordering, with intervals.

    A factor of two then counts the same for 20 samples and for 200. A run is trimmed if it is unusual among those of
    its ordering, not because its ordering is hard. Orderings are resampled, each with its own mean, so that the
    intervals belong to the estimate.

    Args:
        values: Restricted samples to criterion of each setting, `[methods, orderings]`.
        resamples: Counts of each ordering in every resample, as `bootstrap_counts` yields them.

    Returns:
        The means, `[methods]`, and the ends of their intervals, `[2, methods]`.
    """
    logarithms = [np.log(table) - np.log(table).mean(0) for table in values]
    once = np.ones((1, sum(table.shape[1] for table in values)), np.uint8)
    [means] = np.exp(aggregates.interquartile_means(logarithms, [once]))
    return means, _ends(
        aggregates.percentile_interval(np.exp(aggregates.interquartile_means(logarithms, resamples))), values
    )


def _ends(ends: Floats, values: Sequence[Floats]) -> Floats:
    """Return the ends of intervals over orderings; NaN if a setting has a single ordering."""
    has_single = any(table.shape[1] < 2 for table in values)
    return ends * (np.nan if has_single else 1)


def _improvements(methods: Sequence[str], values: Sequence[Floats]) -> list[dict[str, Any]]:
    """Return the mean probability over settings that one method needs fewer samples than another, of all pairs."""
    probabilities, *ends = aggregates.probabilities_of_improvement(values)
    low, high = _ends(np.array(ends), values)
    return [
        {
            "better": methods[first],
            "worse": methods[second],
            "probability": float(probabilities[first, second]),
            "interval": finite_ends((low[first, second], high[first, second])),
        }
        for first, second in combinations(range(len(methods)), 2)
    ]

"""Methods over several settings: interquartile means, ranks and probabilities of improvement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.leaderboard.rows import Scored, interval
from headstart.evaluation.leaderboard.settings import CHOICES, DATA_SET, TUNED, differing_within, values_of
from headstart.evaluation.stored_traces import describe_differences
from headstart.metrics.ranking.aggregates import (
    bootstrap_counts,
    interquartile_means,
    percentile_interval,
    probabilities_of_improvement,
    ranks,
)
from headstart.metrics.sample_efficiency.scores import t_interval

Values = NDArray[np.float64]
# What is compared over. A file of weights is the same wherever it lies.
OVER = (*DATA_SET, "backbone", "weights_sha256")


def choose_comparable(scored: Sequence[Scored]) -> tuple[list[Scored], list[str]]:
    """Take settings of which no two are of the same data set and backbone, and say which others are left out."""
    chosen, shown = one_of_each(scored, OVER)
    names = [each.setting.name for each in chosen]
    left_out = [each.setting.name for each in scored if each.setting.name not in names]
    remarks = []
    if left_out:
        others = f"others of the same data sets and backbones are left out: {'; '.join(left_out)}"
        remarks.append(f"Over settings of {shown}; {others}. --where chooses them.")
    choices = [{key: each.protocol.get(key) for key in CHOICES} for each in chosen]
    differing = ", ".join(f"{key} ({values})" for key, values in describe_differences(choices).items())
    remarks += [f"The settings differ also in {differing}."] * bool(differing)
    return chosen, remarks


def one_of_each(scored: Sequence[Scored], keys: Sequence[str]) -> tuple[list[Scored], str]:
    """Take settings of which no two agree in some keys of their protocols.

    Where several do, the one is taken that is of the kind that most of them are of, by what differs between them; where
    none is, the first.

    Args:
        scored: The settings.
        keys: The keys.

    Returns:
        Those that are taken, and the kind.
    """
    cells: dict[tuple[str, ...], list[Scored]] = {}
    for each in scored:
        cells.setdefault(values_of(each.protocol, keys), []).append(each)
    every = [each.protocol for each in scored]
    several = [each.protocol for same in cells.values() if len(same) > 1 for each in same]
    differing = differing_within(every, keys)
    alike, all_alike = (Counter(values_of(each, differing) for each in protocols) for protocols in (several, every))
    most = max(alike, key=lambda kind: (alike[kind], all_alike[kind]), default=())
    chosen, without = [], []
    for same in cells.values():
        of_kind = [each for each in same if values_of(each.protocol, differing) == most]
        chosen.append((of_kind or same)[0])
        without += [same[0].setting.name] * (len(same) > 1 and not of_kind)
    shown = ", ".join(f"{key} {value}" for key, value in zip(differing, most, strict=True)) or "one stream each"
    return chosen, shown + f" (where there is none such, of {'; '.join(without)})" * bool(without)


def common_methods(scored: Sequence[Scored]) -> tuple[list[str], list[str]]:
    """Take the methods that all settings have, and are the same in all; say which others are left out."""
    every = list(dict.fromkeys(name for each in scored for name in each.names))
    missing = [name for name in every if not all(name in each.names for each in scored)]
    changed = [name for name in every if name not in missing and not _same(name, scored)]
    remarks = [f"Not in all settings, and left out: {', '.join(missing)}."] * bool(missing)
    remarks += [f"Not the same method in all settings, and left out: {', '.join(changed)}."] * bool(changed)
    return [name for name in every if name not in missing and name not in changed], remarks


def _same(name: str, scored: Sequence[Scored]) -> bool:
    # Data sets may have limits of their own.
    kinds = [{**each.setting.provenances[name], "max_samples": None} for each in scored]
    return all(kind == kinds[0] for kind in kinds)


def describe_over_settings(scored: Sequence[Scored]) -> tuple[dict[str, Any] | None, list[str]]:
    """Give `over_settings` as it stands in `leaderboard.json`, or None, and remarks on why."""
    chosen, remarks = choose_comparable(scored)
    methods, more = common_methods(chosen)
    remarks += more
    if len(chosen) < 2 or len(methods) < 2:
        few = f"Nothing is compared over settings: {len(chosen)} of them, with {len(methods)} methods in common."
        return None, [*remarks, few]
    values = [each.restricted[[each.names.index(name) for name in methods]] for each in chosen]
    resamples = [bootstrap_counts(each.shape[1], stratum) for stratum, each in enumerate(values)]
    middle, ends = relative_interquartile_means(values, resamples)
    placed = np.stack([ranks(each.mean(1)) for each in values])
    order = np.argsort(middle, kind="stable")
    rows = [
        {
            "name": methods[place],
            "tuned": any(each.setting.tuned.get(methods[place]) == TUNED for each in chosen),
            "interquartile_mean": float(middle[place]),
            "interquartile_mean_interval": interval(*ends[:, place]),
            **_mean_rank(placed[:, place], [values_of(each.protocol, DATA_SET) for each in chosen], len(methods)),
            "ranks": placed[:, place].tolist(),
        }
        for place in order
    ]
    improvements = _improvements([methods[place] for place in order], [each[order] for each in values], resamples)
    return {
        "settings": [each.setting.name for each in chosen],
        "remarks": remarks,
        "methods": rows,
        "probability_of_improvement": improvements,
    }, []


def relative_interquartile_means(values: Sequence[Values], resamples: list[Values]) -> tuple[Values, Values]:
    """Give the interquartile means of samples over the geometric mean of all methods in the ordering, with intervals.

    A factor of two then counts the same where 20 samples are needed as where 200 are, and a run is unusual, and
    trimmed, for what it is among those of its ordering, not because that is a hard one. What is drawn again are
    orderings, each with its own mean, so that the intervals belong to the estimate.

    Args:
        values: Restricted samples to criterion of each setting, `[methods, orderings]`.
        resamples: How often each ordering comes in every resample of each setting, `[resamples, orderings]`.

    Returns:
        The means, `[methods]`, and the ends of their intervals, `[2, methods]`.
    """
    logarithms = [np.log(each) - np.log(each).mean(0) for each in values]
    [middle] = np.exp(interquartile_means(logarithms, [np.ones((1, each.shape[1])) for each in values]))
    return middle, _ends(np.exp(interquartile_means(logarithms, resamples)), values)


def _ends(resampled: Values, values: Sequence[Values]) -> Values:
    """Give percentile intervals; NaN where a setting has a single ordering, of which nothing can be drawn."""
    alone = any(each.shape[1] < 2 for each in values)
    return percentile_interval(resampled) * (np.nan if alone else 1)


def _mean_rank(placed: Values, data_sets: Sequence[tuple[str, ...]], methods: int) -> dict[str, Any]:
    """Give the mean over data sets of a method's ranks, with the t interval over these.

    Settings of one data set are alike, so that they count together; with one data set alone, settings count apart.
    """
    names = dict.fromkeys(data_sets)
    means = placed
    if len(names) > 1:
        means = np.array([placed[[each == name for each in data_sets]].mean() for name in names])
    low, high = t_interval(means)
    return {"mean_rank": float(means.mean()), "mean_rank_interval": interval(max(low, 1.0), min(high, float(methods)))}


def _improvements(
    methods: Sequence[str], values: Sequence[Values], resamples: Sequence[Values]
) -> list[dict[str, Any]]:
    """Give the mean probability over settings that the one method takes fewer samples than the other, of all pairs."""
    whole = np.mean([probabilities_of_improvement(v, np.ones((1, v.shape[1])))[0] for v in values], axis=0)
    drawn = np.zeros((len(resamples[0]), len(methods), len(methods)))
    for v, counts in zip(values, resamples, strict=True):
        drawn += probabilities_of_improvement(v, counts) / len(values)
    low, high = _ends(drawn, values)
    return [
        {
            "better": methods[one],
            "worse": methods[other],
            "probability": float(whole[one, other]),
            "interval": interval(low[one, other], high[one, other]),
        }
        for one in range(len(methods))
        for other in range(one + 1, len(methods))
    ]

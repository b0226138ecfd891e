"""Methods over several settings: interquartile means, ranks and probabilities of improvement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.leaderboard.rows import Scored
from evaluation.leaderboard.settings import differing_within, values_of
from metrics.ranking.aggregates import (
    RESAMPLES,
    SEED,
    bootstrap_counts,
    interquartile_means,
    percentile_interval,
    probabilities_of_improvement,
    ranks,
)

Values = NDArray[np.float64]
# What is compared over. A file of weights is the same wherever it lies.
OVER = ("dataset", "backbone", "weights_sha256")


def choose_comparable(scored: Sequence[Scored]) -> tuple[list[Scored], list[str]]:
    """Take settings of which no two are of the same data set and backbone, and say which others are left out.

    Where several are of the same, settings are grouped by what differs between those, and the largest group counts.
    """
    keys = differing_within([each.protocol for each in scored], OVER)
    groups: dict[tuple[str, ...], list[Scored]] = {}
    for each in scored:
        groups.setdefault(values_of(each.protocol, keys), []).append(each)
    chosen: dict[tuple[str, ...], Scored] = {}
    for each in max(groups.values(), key=len):
        chosen.setdefault(values_of(each.protocol, OVER), each)
    names = [each.setting.name for each in chosen.values()]
    left_out = [each.setting.name for each in scored if each.setting.name not in names]
    if not left_out:
        return list(scored), []
    values = values_of(next(iter(chosen.values())).protocol, keys)
    shown = ", ".join(f"{key} {value}" for key, value in zip(keys, values, strict=True)) or "one stream each"
    others = f"others of the same data sets and backbones are left out: {'; '.join(left_out)}"
    return list(chosen.values()), [f"Over settings of {shown}; {others}. --where chooses them."]


def common_methods(scored: Sequence[Scored]) -> tuple[list[str], list[str]]:
    """Take the methods that all settings have, and are the same in all; say which others are left out."""
    every = list(dict.fromkeys(name for each in scored for name in each.names))
    missing = [name for name in every if not all(name in each.names for each in scored)]
    changed = [name for name in every if name not in missing and not _same(name, scored)]
    remarks = [f"Not in all settings, and left out: {', '.join(missing)}."] * bool(missing)
    remarks += [f"Not the same method in all settings, and left out: {', '.join(changed)}."] * bool(changed)
    return [name for name in every if name not in missing and name not in changed], remarks


def _same(name: str, scored: Sequence[Scored]) -> bool:
    first = scored[0].setting.provenances[name]
    return all(each.setting.provenances[name] == first for each in scored)


def describe_over_settings(scored: Sequence[Scored]) -> dict[str, Any] | None:
    """Give `over_settings` as it stands in `leaderboard.json`; None where there is nothing to compare over."""
    chosen, remarks = choose_comparable(scored)
    methods, more = common_methods(chosen)
    if len(chosen) < 2 or len(methods) < 2:
        return None
    values = [each.restricted[[each.names.index(name) for name in methods]] for each in chosen]
    # Samples over their geometric mean in the setting: a factor of two counts the same where 20 samples are needed as
    # where 200 are, and a run is unusual, and trimmed, for what it is in its setting, not because that is a hard one.
    logarithms = [np.log(each) - np.log(each).mean() for each in values]
    counts = [bootstrap_counts(each.shape[1], stratum) for stratum, each in enumerate(values)]
    [middle] = np.exp(interquartile_means(logarithms, [np.ones((1, each.shape[1])) for each in values]))
    low, high = np.exp(percentile_interval(interquartile_means(logarithms, counts)))
    placed = np.stack([ranks(each.mean(1)) for each in values])
    resampled = np.stack([ranks(count @ each.T) for count, each in zip(counts, values, strict=True)], axis=1)
    drawn = np.random.default_rng(SEED).integers(len(values), size=(RESAMPLES, len(values)))
    rank_low, rank_high = percentile_interval(np.take_along_axis(resampled, drawn[..., None], axis=1).mean(1))
    order = np.argsort(middle, kind="stable")
    return {
        "settings": [each.setting.name for each in chosen],
        "remarks": [*remarks, *more],
        "methods": [
            {
                "name": methods[place],
                "interquartile_mean": float(middle[place]),
                "interquartile_mean_interval": [float(low[place]), float(high[place])],
                "mean_rank": float(placed[:, place].mean()),
                "mean_rank_interval": [float(rank_low[place]), float(rank_high[place])],
                "ranks": placed[:, place].tolist(),
            }
            for place in order
        ],
        "probability_of_improvement": _improvements(
            [methods[place] for place in order], [v[order] for v in values], counts
        ),
    }


def _improvements(methods: Sequence[str], values: Sequence[Values], counts: Sequence[Values]) -> list[dict[str, Any]]:
    """Give the mean probability over settings that the one method takes fewer samples than the other, of all pairs."""
    whole = np.mean([probabilities_of_improvement(v, np.ones((1, v.shape[1])))[0] for v in values], axis=0)
    resampled = np.mean(
        [probabilities_of_improvement(v, count) for v, count in zip(values, counts, strict=True)], axis=0
    )
    low, high = percentile_interval(resampled)
    return [
        {
            "better": methods[one],
            "worse": methods[other],
            "probability": float(whole[one, other]),
            "interval": [float(low[one, other]), float(high[one, other])],
        }
        for one in range(len(methods))
        for other in range(one + 1, len(methods))
    ]

"""How robust a ranking is: under other criteria, and where one part of the setup varies."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from headstart.evaluation.leaderboard.over_settings import common_methods, one_of_each, restricted_frame
from headstart.evaluation.leaderboard.scores import interval_if_known
from headstart.evaluation.leaderboard.settings import CHOICES, DATA_SET, Setting, differing_within, values_of
from headstart.evaluation.runs import known_until
from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.metrics.ranking.aggregates import jackknife_interval
from headstart.metrics.ranking.outcomes import agreement_vectors, group_agreements
from headstart.metrics.sample_efficiency.curves import first_streaks, is_open, required_correct
from headstart.metrics.sample_efficiency.scores import finite, restricted

THRESHOLDS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
CONSECUTIVE = (1, 5, 10, 20)
TIES = 1e-12
# Parts of a setup, and the keys of the protocol that they consist of.
PARTS = {"data set": DATA_SET, "backbone": ("backbone", "weights_sha256"), "batch size": ("batch_size",)}
# Keys that data sets may choose for themselves, but in which settings of one data set must not differ.
OWN = ("threshold", "max_samples")
# Number of times that the orderings of a setting are halved.
HALVINGS, SEED = 20, 0
# What a line of `read_grid` is of: a criterion, the samples up to which it is known which traces meet it, and how many
# traces are undecided.
CRITERION = ["threshold", "consecutive", "restricted_at", "undecided"]
# Rankings, `[rankings, methods]`, lower is better; the group within which each is compared with the others, whose
# setups differ in one part alone; and its unit of the jackknife, which leaves out all rankings of a unit.
Rankings = tuple[Floats, pd.Index, pd.Index]


def read_grid(setting: Setting) -> pd.DataFrame:
    """Return the means of the samples to criterion under all criteria, the setting's own threshold among them.

    Means are cut where the first trace ends of which nothing more is known. They are NaN where no trace meets the
    criterion by then, or skipped evaluations would decide. Undecided traces end before the setting's limit without
    meeting the criterion, or have skipped evaluations that would decide.

    Returns:
        A line for each criterion, by the values of `CRITERION`, and a column for each method.
    """
    curves, criteria, means = setting.curves, [], []
    ends = curves.ends
    for threshold in sorted({*THRESHOLDS, curves.threshold}):
        traces = curves.correct, curves.samples_seen, required_correct(threshold, curves.all_correct), CONSECUTIVE
        streaks = first_streaks(*traces)[:, 0]
        for consecutive, samples, open_ in zip(CONSECUTIVE, streaks, is_open(*traces), strict=True):
            limit = known_until(curves, samples, ends)
            is_known = (samples <= limit).any() and not open_.any()
            ended = ends + curves.samples_seen[0] <= curves.limit
            undecided = int((open_ | (np.isinf(samples) & ended)).sum())
            criteria.append((threshold, consecutive, limit, undecided))
            means.append(restricted(samples, limit)[setting.order].mean(1) if is_known else [np.nan] * len(samples))
    return pd.DataFrame(means, pd.MultiIndex.from_tuples(criteria, names=CRITERION), setting.names)


def describe_sensitivity(settings: Sequence[Setting], grids: Sequence[pd.DataFrame]) -> dict[str, Any]:
    """Return the sensitivity of all settings as it stands in `leaderboard.json`."""
    return {
        "consecutive": list(CONSECUTIVE),
        "settings": [
            {"name": setting.name, "grid": _describe_grid(setting, grid)}
            for setting, grid in zip(settings, grids, strict=True)
        ],
    }


def _describe_grid(setting: Setting, grid: pd.DataFrame) -> list[dict[str, Any]]:
    own, means = setting.restricted.mean(1), grid.to_numpy()
    # Criteria without scores have no ranking.
    is_known = np.asarray(~np.isnan(means).any(1))
    vectors, defined = agreement_vectors(np.stack([own, *np.where(is_known[:, None], means, own)]), TIES)
    taus = np.where(defined[0] & defined[1:], vectors[1:] @ vectors[0], np.nan).tolist()
    return [
        {
            **dict(zip(CRITERION, criterion, strict=True)),
            "order": [setting.names[index] for index in np.argsort(mean, kind="stable")] if known else [],
            "restricted_means": dict(zip(setting.names, map(finite, mean), strict=True)),
            "tau": finite(tau) if known else None,
        }
        for criterion, mean, tau, known in zip(grid.index.tolist(), means, taus, is_known, strict=True)
    ]


def describe_setup_stability(settings: Sequence[Setting], grids: Sequence[pd.DataFrame]) -> dict[str, Any] | None:
    """Return `setup_stability` as it stands in `leaderboard.json`; None where settings share fewer than two methods.

    Args:
        settings: The settings.
        grids: Their scores under all criteria.
    """
    methods, _ = common_methods(settings)
    if len(methods) < 2:
        return None
    frame = restricted_frame(settings, methods)
    by_setting = frame.groupby(level="setting", sort=False)
    means = by_setting.mean().to_numpy()
    rankings = {part: _of_settings(settings, means, part) for part in PARTS}

    # Rankings of a group share the other value of the criterion. Undecided traces are cut, at another number of samples
    # for each criterion, which moves the ranking as well.
    named = {setting.name: grid[methods] for setting, grid in zip(settings, grids, strict=True)}
    decided = pd.concat(named, names=["setting"]).query("undecided == 0").dropna()
    units = decided.index.get_level_values("setting")
    for part, fixed in (("evaluations", "threshold"), ("threshold", "consecutive")):
        others = [key for key in CRITERION if key != fixed]
        rankings[part] = decided.to_numpy(), decided.index.droplevel(others), units
    rankings["ordering"] = frame.to_numpy(), frame.index, frame.index
    rankings["half of the orderings"] = _of_halves([own.to_numpy() for _, own in by_setting])
    return {"methods": methods, "parts": [describe_stability(part, *each) for part, each in rankings.items()]}


def _of_settings(settings: Sequence[Setting], means: Floats, part: str) -> Rankings:
    """Return the rankings of settings that differ in one part alone."""
    varied, compared = PARTS[part], settings
    keys = dict.fromkeys((*chain(*PARTS.values()), *CHOICES))
    keys |= dict.fromkeys(differing_within([setting.protocol for setting in settings], list(keys)))
    if varied == DATA_SET:
        keys = dict.fromkeys(key for key in keys if key not in OWN)
        compared, _ = one_of_each(settings, list(keys))
    fixed, compared_names = [key for key in keys if key not in varied], {setting.name for setting in compared}
    rows = [index for index, each in enumerate(settings) if each.name in compared_names]
    groups, units = (
        pd.MultiIndex.from_tuples([values_of(settings[row].protocol, of) for row in rows]) for of in (fixed, varied)
    )
    return means[rows], groups, units


def _of_halves(values: Sequence[Floats]) -> Rankings:
    """Return the rankings by random halves of the orderings of each setting, `[orderings, methods]`."""
    generator, means, groups = np.random.default_rng(SEED), [], []
    for setting, own in enumerate(values):
        half = len(own) // 2
        for halving in range(HALVINGS if half else 0):
            order = generator.permutation(len(own))
            means += [own[order[:half]].mean(0), own[order[half : 2 * half]].mean(0)]
            groups += [(setting, halving)] * 2
    index = pd.MultiIndex.from_tuples(groups, names=["setting", "halving"])
    return np.array(means), index, index.get_level_values("setting")


def describe_stability(part: str, outcomes: Floats, groups: pd.Index, units: pd.Index) -> dict[str, Any]:
    """Return the stability, its interval by the jackknife over units, and the number of compared pairs.

    Args:
        part: The part in which rankings of a group differ.
        outcomes: Samples by which methods are ranked, lower is better, `[rankings, methods]`.
        groups: Group of each ranking, within which it is compared.
        units: Unit of each ranking.
    """
    if not len(outcomes):
        return {"part": part, "stability": None, "interval": None, "compared": 0}
    vectors, defined = agreement_vectors(outcomes, TIES)
    group, unit = groups.factorize()[0], units.factorize()[0]
    means, pairs = _agreements(vectors, defined, group, group.max() + 1)
    mean, ends = _mean(means), None

    if mean is not None:
        without = []
        for each in range(unit.max() + 1):
            # The groups of other units alone stay as they are.
            touched = np.bincount(group[unit == each], minlength=len(means)) > 0
            others, numbers = touched[group] & (unit != each), np.cumsum(touched) - 1
            rest = means.copy()
            rest[touched], _ = _agreements(vectors[others], defined[others], numbers[group[others]], touched.sum())
            without.append(_mean(rest))
        low, high = jackknife_interval(mean, np.array(without, dtype=np.float64))
        ends = interval_if_known(float(np.maximum(low, -1.0)), float(np.minimum(high, 1.0)))
    return {"part": part, "stability": mean, "interval": ends, "compared": pairs}


def _agreements(vectors: Floats, defined: Flags, groups: Indices, count: int) -> tuple[Floats, int]:
    """Return the mean agreement within each of so many groups, NaN without a pair, and the number of pairs."""
    sums = np.zeros((count, vectors.shape[1]))
    np.add.at(sums, groups, vectors)
    members = np.bincount(groups, weights=defined, minlength=count).astype(np.int64)
    means, pairs = group_agreements(sums, members)
    return means, int(pairs.sum())


def _mean(means: Floats) -> float | None:
    """Return the unweighted mean over groups; None where no group has a pair."""
    defined = means[np.isfinite(means)]
    return float(defined.sum()) / len(defined) if len(defined) else None

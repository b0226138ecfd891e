"""How robust a ranking is: under other criteria, and where one part of the setup varies."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from headstart.evaluation.leaderboard.entries import interval_if_known
from headstart.evaluation.leaderboard.over_settings import common_methods, one_of_each, restricted_of
from headstart.evaluation.leaderboard.settings import CHOICES, DATA_SET, Setting, differing_within, values_of
from headstart.evaluation.runs import known_until
from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.metrics.ranking.aggregates import jackknife_interval
from headstart.metrics.ranking.outcomes import MeanAgreement, agreement_vectors
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


@dataclass(frozen=True)
class CriterionScores:
    """Scores of a setting under one criterion.

    Attributes:
        threshold: Its accuracy.
        consecutive: Its streak length.
        limit: Samples up to which it is known which traces meet the criterion.
        undecided: Number of traces that end before the setting's limit without meeting it, or of which skipped
            evaluations would decide.
        means: Means of the samples to criterion cut at the limit, `[methods]`, in the order of the leaderboard. None if
            no trace meets the criterion by then, or skipped evaluations would decide.
    """

    threshold: float
    consecutive: int
    limit: int
    undecided: int
    means: Floats | None


def read_grid(setting: Setting) -> list[CriterionScores]:
    """Return the scores of a setting under all criteria, its own threshold among them."""
    curves, grid = setting.curves, []
    ends = curves.ends
    for threshold in sorted({*THRESHOLDS, curves.threshold}):
        required = required_correct(threshold, curves.all_correct)
        traces = curves.correct, curves.samples_seen, required, CONSECUTIVE
        streaks = first_streaks(*traces)[:, 0]
        for consecutive, samples, open_ in zip(CONSECUTIVE, streaks, is_open(*traces), strict=True):
            limit = known_until(curves, samples, ends)
            is_known = (samples <= limit).any() and not open_.any()
            means = restricted(samples, limit)[setting.order].mean(1) if is_known else None
            ended = ends + curves.samples_seen[0] <= curves.limit
            undecided = int((open_ | (np.isinf(samples) & ended)).sum())
            grid.append(CriterionScores(threshold, consecutive, limit, undecided, means))
    return grid


def describe_sensitivity(settings: Sequence[Setting], grids: Sequence[list[CriterionScores]]) -> dict[str, Any]:
    """Return the sensitivity of all settings as it stands in `leaderboard.json`."""
    return {
        "consecutive": list(CONSECUTIVE),
        "settings": [
            {"name": setting.name, "grid": _describe_grid(setting, grid)}
            for setting, grid in zip(settings, grids, strict=True)
        ],
    }


def _describe_grid(setting: Setting, grid: Sequence[CriterionScores]) -> list[dict[str, Any]]:
    own = setting.restricted.mean(1)
    means = [own if scores.means is None else scores.means for scores in grid]
    vectors, defined = agreement_vectors(np.stack([own, *means]), TIES)
    taus = np.where(defined[0] & defined[1:], vectors[1:] @ vectors[0], np.nan).tolist()

    names, described = setting.names, []
    # Criteria without scores have no ranking.
    for scores, mean, tau in zip(grid, means, taus, strict=True):
        ranking: dict[str, Any] = {"order": [], "restricted_means": dict.fromkeys(names), "tau": None}
        if scores.means is not None:
            ranking = {
                "order": [names[index] for index in np.argsort(mean, kind="stable")],
                "restricted_means": dict(zip(names, mean.tolist(), strict=True)),
                "tau": finite(tau),
            }

        described.append(
            {
                "threshold": scores.threshold,
                "consecutive": scores.consecutive,
                "restricted_at": scores.limit,
                "undecided": scores.undecided,
                **ranking,
            }
        )
    return described


class Experiment(NamedTuple):
    """A ranking of methods, which is compared with the others of its group.

    Attributes:
        outcome: Restricted samples, `[methods]`, lower is better.
        group: The group, within which setups differ in one part alone.
        unit: The unit of the jackknife, which leaves out all experiments of a unit.
    """

    outcome: Floats
    group: Hashable
    unit: Hashable


def describe_setup_stability(
    settings: Sequence[Setting], grids: Sequence[list[CriterionScores]]
) -> dict[str, Any] | None:
    """Return `setup_stability` as it stands in `leaderboard.json`; None where settings share fewer than two methods.

    Args:
        settings: The settings.
        grids: Their scores under all criteria.
    """
    methods, _ = common_methods(settings)
    if len(methods) < 2:
        return None
    values = restricted_of(settings, methods)
    experiments = {part: list(_over_settings(settings, values, part)) for part in PARTS}

    for position, part in enumerate(("evaluations", "threshold")):
        # Experiments of a group share the other value of the criterion. Undecided traces are cut, at another number of
        # samples for each criterion, which moves the ranking as well.
        experiments[part] = [
            Experiment(scores.means[rows], (index, (scores.threshold, scores.consecutive)[position]), index)
            for index, (setting, grid) in enumerate(zip(settings, grids, strict=True))
            for rows in [[setting.names.index(name) for name in methods]]
            for scores in grid
            if scores.means is not None and not scores.undecided
        ]
    experiments["ordering"] = [
        Experiment(outcome, index, index) for index, each in enumerate(values) for outcome in each.T
    ]
    experiments["half of the orderings"] = list(_over_halves(values))
    return {"methods": methods, "parts": [describe_stability(part, each) for part, each in experiments.items()]}


def _over_settings(settings: Sequence[Setting], values: Sequence[Floats], part: str) -> Iterator[Experiment]:
    """Yield settings that differ in one part alone."""
    varied, compared = PARTS[part], settings
    keys = dict.fromkeys((*chain(*PARTS.values()), *CHOICES))
    keys |= dict.fromkeys(differing_within([each.protocol for each in settings], list(keys)))
    if varied == DATA_SET:
        keys = dict.fromkeys(key for key in keys if key not in OWN)
        compared, _ = one_of_each(settings, list(keys))
    names = {each.name for each in compared}
    fixed = [key for key in keys if key not in varied]
    for each, samples in zip(settings, values, strict=True):
        if each.name in names:
            yield Experiment(samples.mean(1), values_of(each.protocol, fixed), values_of(each.protocol, varied))


def _over_halves(values: Sequence[Floats]) -> Iterator[Experiment]:
    """Yield random halves of the orderings of each setting."""
    generator = np.random.default_rng(SEED)
    for index, samples in enumerate(values):
        half = samples.shape[1] // 2
        for halving in range(HALVINGS if half else 0):
            order = generator.permutation(samples.shape[1])
            for part in (order[:half], order[half : 2 * half]):
                yield Experiment(samples[:, part].mean(1), (index, halving), index)


def describe_stability(part: str, experiments: Sequence[Experiment]) -> dict[str, Any]:
    """Return the stability, its interval by the jackknife over units, and the number of compared pairs.

    Args:
        part: The part in which experiments of a group differ.
        experiments: The experiments.
    """
    if not experiments:
        return {"part": part, "stability": None, "interval": None, "compared": 0}
    vectors, defined = agreement_vectors(np.stack([each.outcome for each in experiments]), TIES)
    groups, units = _numbers([each.group for each in experiments]), _numbers([each.unit for each in experiments])
    means, pairs = _agreements(vectors, defined, groups, groups.max() + 1)
    mean, ends = _mean(means), None

    if mean is not None:
        without = []
        for unit in range(units.max() + 1):
            # The groups of other units alone stay as they are.
            touched = np.bincount(groups[units == unit], minlength=len(means)) > 0
            others, numbers = touched[groups] & (units != unit), np.cumsum(touched) - 1
            rest = means.copy()
            rest[touched], _ = _agreements(vectors[others], defined[others], numbers[groups[others]], touched.sum())
            without.append(_mean(rest))
        low, high = jackknife_interval(mean, np.array(without, dtype=np.float64))
        ends = interval_if_known(float(np.maximum(low, -1.0)), float(np.minimum(high, 1.0)))
    return {"part": part, "stability": mean, "interval": ends, "compared": pairs}


def _numbers(labels: Sequence[Hashable]) -> Indices:
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return np.array([numbers[label] for label in labels])


def _agreements(vectors: Floats, defined: Flags, groups: Indices, count: int) -> tuple[Floats, int]:
    """Return the mean agreement within each of so many groups, NaN without a pair, and the number of pairs."""
    sums = np.zeros((count, vectors.shape[1]))
    np.add.at(sums, groups, vectors)
    agreement = MeanAgreement()
    means = agreement.add(sums, np.bincount(groups, weights=defined, minlength=count).astype(np.int64))
    return means, agreement.pairs


def _mean(means: Floats) -> float | None:
    """Return the unweighted mean over groups; None where no group has a pair."""
    known = means[np.isfinite(means)]
    return float(known.sum()) / len(known) if len(known) else None

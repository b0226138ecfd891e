"""How a ranking moves under other criteria."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from headstart.evaluation.leaderboard.settings import Setting
from headstart.evaluation.runs import known_until
from headstart.metrics.arrays import Floats
from headstart.metrics.ranking.outcomes import agreement_vectors
from headstart.metrics.sample_efficiency.curves import first_streaks, is_open, required_correct
from headstart.metrics.sample_efficiency.scores import finite, restricted

THRESHOLDS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
CONSECUTIVE = (1, 5, 10, 20)
TIES = 1e-12


def describe_sensitivity(settings: Sequence[Setting]) -> dict[str, Any]:
    """Return the sensitivity of all settings as it stands in `leaderboard.json`."""
    return {
        "consecutive": list(CONSECUTIVE),
        "settings": [{"name": setting.name, "grid": _describe_grid(setting)} for setting in settings],
    }


def _describe_grid(setting: Setting) -> list[dict[str, Any]]:
    criteria, means = _read_grid(setting)
    # Criteria without scores have no ranking.
    own, is_known = setting.restricted.mean(1), np.asarray(~np.isnan(means).any(1))
    vectors, defined = agreement_vectors(np.stack([own, *np.where(is_known[:, None], means, own)]), TIES)
    taus = np.where(defined[0] & defined[1:], vectors[1:] @ vectors[0], np.nan).tolist()
    return [
        {
            **criterion,
            "order": [setting.names[index] for index in np.argsort(mean, kind="stable")] if known else [],
            "restricted_means": dict(zip(setting.names, map(finite, mean), strict=True)),
            "tau": finite(tau) if known else None,
        }
        for criterion, mean, tau, known in zip(criteria, means, taus, is_known, strict=True)
    ]


def _read_grid(setting: Setting) -> tuple[list[dict[str, Any]], Floats]:
    """Return all criteria, the setting's own threshold among them, and the means of the samples to each of them.

    Means are cut where the first trace ends of which nothing more is known. They are NaN where no trace meets the
    criterion by then, or skipped evaluations would decide. Undecided traces end before the setting's limit without
    meeting the criterion, or have skipped evaluations that would decide.

    Returns:
        The criteria, with the samples at which means are cut and the number of undecided traces; and the means,
        `[criteria, methods]`.
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
            criterion = {"threshold": threshold, "consecutive": consecutive}
            criteria.append({**criterion, "restricted_at": limit, "undecided": undecided})
            means.append(restricted(samples, limit)[setting.order].mean(1) if is_known else [np.nan] * len(samples))
    return criteria, np.array(means)

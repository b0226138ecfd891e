"""The same ranking under other criteria, from the stored traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headstart.evaluation.joined_runs import known_until
from headstart.evaluation.leaderboard.settings import Setting, Values
from headstart.metrics.ranking.outcome_agreement import agreement_vectors
from headstart.metrics.sample_efficiency.curves import first_streaks, is_open, required_correct
from headstart.metrics.sample_efficiency.scores import finite, restricted

THRESHOLDS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
CONSECUTIVE = (1, 5, 10, 20)
TIES = 1e-12


@dataclass(frozen=True)
class CriterionScores:
    """Scores of a setting under one criterion.

    Attributes:
        threshold: Its accuracy.
        consecutive: Its streak length.
        limit: Samples up to which it is known which traces meet the criterion.
        undecided: Number of traces that end before the setting's limit without meeting it, or of which skipped
            evaluations would decide.
        values: Samples to criterion cut at the limit, `[methods, orderings]`, in the order of the leaderboard; None
            where no trace meets the criterion by then, or skipped evaluations would decide.
    """

    threshold: float
    consecutive: int
    limit: int
    undecided: int
    values: Values | None


def read_grid(setting: Setting) -> list[CriterionScores]:
    """Return the scores of a setting under all criteria, its own threshold among them."""
    curves, grid = setting.curves, []
    for threshold in sorted({*THRESHOLDS, curves.threshold}):
        required = required_correct(threshold, curves.all_correct)
        traces = curves.correct, curves.samples_seen, required, CONSECUTIVE
        streaks = first_streaks(*traces)[:, 0]
        for consecutive, samples, open_ in zip(CONSECUTIVE, streaks, is_open(*traces), strict=True):
            limit = known_until(curves, samples)
            is_known = (samples <= limit).any() and not open_.any()
            values = restricted(samples, limit)[setting.order] if is_known else None
            ended = curves.ends + curves.samples_seen[0] <= curves.limit
            undecided = int((open_ | (np.isinf(samples) & ended)).sum())
            grid.append(CriterionScores(threshold, consecutive, limit, undecided, values))
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
    means = [own if scores.values is None else scores.values.mean(1) for scores in grid]
    vectors, defined = agreement_vectors(np.stack([own, *means]), TIES)
    taus = np.where(defined[0] & defined[1:], vectors[1:] @ vectors[0], np.nan).tolist()

    names, described = setting.names, []
    # Criteria without scores have no ranking.
    for scores, mean, tau in zip(grid, means, taus, strict=True):
        ranking: dict[str, Any] = {"order": [], "restricted_means": dict.fromkeys(names), "tau": None}
        if scores.values is not None:
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

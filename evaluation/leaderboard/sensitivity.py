"""The same ranking under other criteria, from the stored traces; and what moves it most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.joined_runs import known_until
from headstart.evaluation.leaderboard.rows import Scored, number
from headstart.metrics.ranking.outcome_agreement import agreement_vectors
from headstart.metrics.sample_efficiency.curves import first_streaks, is_open, required_correct
from headstart.metrics.sample_efficiency.scores import restricted

THRESHOLDS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
CONSECUTIVE = (1, 5, 10, 20)
TIES = 1e-12

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """One criterion on the traces of a setting.

    Attributes:
        threshold: Its accuracy.
        consecutive: Its streak length.
        limit: Up to where it is known which traces meet it.
        undecided: Traces that end before the setting's limit without meeting it, or of which evaluations are left out
            that would decide.
        values: Samples to criterion cut there, `[methods, orderings]`; None where no trace meets it by then, or nothing
            of it is known.
    """

    threshold: float
    consecutive: int
    limit: int
    undecided: int
    values: Values | None


def read_grid(scored: Scored) -> list[Cell]:
    """Read the traces of a setting by all criteria and its own threshold, methods in the order of the leaderboard."""
    curves, ends, cells = scored.setting.curves, scored.setting.curves.ends, []
    for threshold in sorted({*THRESHOLDS, curves.threshold}):
        required = required_correct(threshold, curves.all_correct)
        traces = curves.correct, curves.samples_seen, required, CONSECUTIVE
        found = first_streaks(*traces)[:, 0]
        for consecutive, samples, left_open in zip(CONSECUTIVE, found, is_open(*traces), strict=True):
            limit = known_until(curves, ends, samples)
            is_known = (samples <= limit).any() and not left_open.any()
            values = restricted(samples, limit)[scored.order] if is_known else None
            undecided = left_open | (np.isinf(samples) & (ends + curves.samples_seen[0] <= curves.limit))
            cells.append(Cell(threshold, consecutive, limit, int(undecided.sum()), values))
    return cells


def describe_grid(scored: Scored, cells: Sequence[Cell]) -> dict[str, Any]:
    """Give the grid of a setting as it stands in `leaderboard.json`."""
    own = scored.restricted.mean(1)
    means = [own if cell.values is None else cell.values.mean(1) for cell in cells]
    vectors, defined = agreement_vectors(np.stack([own, *means]), TIES)
    taus = np.where(defined[0] & defined[1:], vectors[1:] @ vectors[0], np.nan)
    return {
        "name": scored.setting.name,
        "grid": [
            {
                "threshold": cell.threshold,
                "consecutive": cell.consecutive,
                "restricted_at": cell.limit,
                "undecided": cell.undecided,
                **(_nothing(scored) if cell.values is None else _order(scored, its, tau)),
            }
            for cell, its, tau in zip(cells, means, taus.tolist(), strict=True)
        ],
    }


def _nothing(scored: Scored) -> dict[str, Any]:
    return {"order": [], "restricted_means": dict.fromkeys(scored.names), "tau": None}


def _order(scored: Scored, means: Values, tau: float) -> dict[str, Any]:
    return {
        "order": [scored.names[place] for place in np.argsort(means, kind="stable")],
        "restricted_means": dict(zip(scored.names, means.tolist(), strict=True)),
        "tau": number(tau),
    }


def describe_sensitivity(scored: Sequence[Scored], grids: Sequence[list[Cell]]) -> dict[str, Any]:
    """Give the sensitivity of all settings as it stands in `leaderboard.json`."""
    return {
        "consecutive": list(CONSECUTIVE),
        "settings": [describe_grid(each, cells) for each, cells in zip(scored, grids, strict=True)],
    }

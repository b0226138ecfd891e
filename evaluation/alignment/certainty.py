"""What is said of linear CKA beside its value: its null, the value that is calibrated by it, and its interval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.similarity.catalogue import mean_over_pairs
from headstart.metrics.similarity.centred_embedding import Embedding
from headstart.metrics.similarity.cka import read_and_multiply
from headstart.metrics.similarity.cka_jackknife import jackknife
from headstart.metrics.similarity.cka_null import calibrate
from headstart.metrics.similarity.cubic_sums import SEED

Matrix = NDArray[np.float64]


def cka_and_certainty(embeddings: Iterable[Embedding]) -> tuple[Matrix, Matrix | None, dict[str, Any]]:
    """Compute linear CKA of all pairs of m embeddings, at least 2, its nulls and its intervals over stimuli.

    Returns:
        Biased and debiased CKA as of `metrics.biased_and_debiased_cka`; and as JSON values, with null for what is
        undefined: `mean_cka_calibrated`; the matrices `null_mean`, `null_sd`, `z`, `p` and `calibrated`; `calibration`,
        how they were made; and `ci95`, the ends for the mean over pairs (`mean`) and matrices of `low` and `high` ends.

    Raises:
        ValueError: As `metrics.pairwise_cka` for the biased estimate.
    """
    read, products = read_and_multiply(embeddings)
    found = calibrate(read, products)
    intervals = jackknife(read, products)
    matrices = {name: _listed(getattr(found, name)) for name in ("null_mean", "null_sd", "z", "p", "calibrated")}
    certainty = {
        "mean_cka_calibrated": mean_over_pairs(found.calibrated),
        **matrices,
        "calibration": {"level": found.level, "seed": SEED},
        "ci95": {
            "mean": list(intervals.mean) if np.isfinite(intervals.mean).all() else None,
            "low": _listed(intervals.low),
            "high": _listed(intervals.high),
        },
    }
    return found.biased, found.debiased, certainty


def _listed(matrix: Matrix) -> list[list[float | None]]:
    """Give a matrix as JSON has it, which knows no NaN."""
    return [[None if np.isnan(value) else float(value) for value in row] for row in matrix]

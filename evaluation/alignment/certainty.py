"""Linear CKA with its certainty: its null, the value calibrated by the null, and its interval over stimuli."""

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
        Biased and debiased CKA as of `metrics.biased_and_debiased_cka`; and as JSON values, with null for undefined
        ones: `mean_cka_calibrated`; the matrices `null_mean`, `null_sd`, `z`, `p` and `calibrated`; `calibration`, the
        settings; and `ci95`, the ends for the mean over pairs (`mean`) and matrices of `low` and `high` ends.

    Raises:
        ValueError: As `metrics.pairwise_cka` for the biased estimate.
    """
    read, products = read_and_multiply(embeddings)
    cka = calibrate(read, products)
    intervals = jackknife(read, products)
    matrices = {name: _to_lists(getattr(cka, name)) for name in ("null_mean", "null_sd", "z", "p", "calibrated")}
    certainty = {
        "mean_cka_calibrated": mean_over_pairs(cka.calibrated),
        **matrices,
        "calibration": {"level": cka.level, "seed": SEED},
        "ci95": {
            "mean": list(intervals.mean) if np.isfinite(intervals.mean).all() else None,
            "low": _to_lists(intervals.low),
            "high": _to_lists(intervals.high),
        },
    }
    return cka.biased, cka.debiased, certainty


def _to_lists(matrix: Matrix) -> list[list[float | None]]:
    """Return a matrix as JSON values, with null for NaN."""
    return [[None if np.isnan(value) else float(value) for value in row] for row in matrix]

"""CKA with nulls and intervals against CKA alone: 200 embeddings of 1,000 stimuli."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from headstart.benchmarks.speed.cka import MODELS, random_embeddings
from headstart.benchmarks.speed.frame import compare, ratios
from headstart.metrics import biased_and_debiased_cka, calibrated_cka, cka_intervals


def main(models: int = MODELS) -> dict[str, float]:
    """Print processor times, in turn, of the matrix alone and with more.

    Args:
        models: Number of models.

    Returns:
        The ratios to the matrix alone.
    """
    embeddings = random_embeddings(np.random.default_rng(0), models)
    calls: dict[str, Callable[[], object]] = {
        "matrix": partial(biased_and_debiased_cka, embeddings),
        "with nulls": partial(calibrated_cka, embeddings),
        "intervals": partial(cka_intervals, embeddings),
    }
    return ratios(compare(calls, "matrix", clock=time.process_time), "matrix")

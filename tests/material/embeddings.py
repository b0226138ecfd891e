"""Embeddings of random stimuli, on which measures of similarity are neither 0 nor 1."""

import numpy as np
from numpy.typing import NDArray


def embeddings(n: int, *widths: int, seed: int = 0, offset: float = 5.0) -> list[NDArray[np.float64]]:
    """Draw embeddings that share some structure and lie away from the origin."""
    generator = np.random.default_rng(seed)
    shared = generator.standard_normal((n, 3))
    return [
        shared @ generator.standard_normal((3, d)) + generator.standard_normal((n, d)) + generator.normal(0, offset, d)
        for d in widths
    ]

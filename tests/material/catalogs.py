"""Random catalogs of stimuli, and their mean CKA by centring matrices."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Embeddings = list[NDArray[np.floating]]
WIDTHS = (3, 8, 40)


def make_catalog(stimuli: int, seed: int, widths: Sequence[int] = WIDTHS) -> Embeddings:
    """Return embeddings that share a part, off the origin and of unlike scale, one per width."""
    generator = np.random.default_rng(seed)
    shared = generator.normal(size=(stimuli, 5))
    return [
        10.0**power * (3 + shared @ generator.normal(size=(5, width)) + 2 * generator.normal(size=(stimuli, width)))
        for power, width in enumerate(widths)
    ]


def mean_cka(embeddings: Sequence[NDArray[np.floating]], subset: Sequence[int]) -> float:
    """Average linear CKA over pairs of models, by centring matrices."""
    centring = np.eye(len(subset)) - 1 / len(subset)
    rows = [embedding[list(subset)].astype(np.float64) for embedding in embeddings]
    grams = [centring @ x @ x.T @ centring for x in rows]
    return float(np.mean([np.sum(a * b) / (np.linalg.norm(a) * np.linalg.norm(b)) for a, b in combinations(grams, 2)]))


def with_copies(stimuli: int, distinct: Sequence[int], noise: float = 0) -> Embeddings:
    """Return a catalog whose second model tells only some stimuli apart, up to noise of its arithmetic."""
    embeddings = make_catalog(stimuli, seed=4)
    copies = [stimulus for stimulus in range(stimuli) if stimulus not in distinct]
    embeddings[1][copies] = embeddings[1][copies[0]]
    embeddings[1] *= 1 + noise * np.random.default_rng(5).normal(size=embeddings[1].shape)
    return embeddings

"""Matrices of all pairs by every measure of similarity, side by side with linear CKA: 1,000 stimuli, in memory."""

from functools import partial

import numpy as np

from headstart.benchmarks.speed.frame import compare, ratios
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES

STIMULI, MODELS = 1000, 8
# The plain CCAs need more stimuli than the dimensions of two models together.
WIDTHS, NARROW = (384, 2048), (128, 499)
NARROW_MEASURES = ("cca", "pwcca")


def main() -> dict[str, float]:
    """Print the time of the matrix of some models by each measure, and its ratio to linear CKA.

    Returns:
        The ratios, by measure.
    """
    found: dict[str, float] = {}
    generator = np.random.default_rng(0)
    shared = generator.standard_normal((STIMULI, 100)) * np.geomspace(1, 0.05, 100)
    wide = [name for name in SIMILARITY_MEASURES if name not in NARROW_MEASURES]
    for names, widths in ((wide, WIDTHS), ([DEFAULT_MEASURE, *NARROW_MEASURES], NARROW)):
        embeddings = [
            (shared @ generator.standard_normal((100, d)) + generator.standard_normal((STIMULI, d))).astype(np.float32)
            for d in generator.permutation(np.linspace(*widths, MODELS).astype(int))
        ]
        print(f"{MODELS} models of {widths[0]} to {widths[1]} dimensions")
        matrices = {name: partial(SIMILARITY_MEASURES[name].pairwise, embeddings) for name in names}
        found |= ratios(compare(matrices, DEFAULT_MEASURE, repeats=1), DEFAULT_MEASURE)
    return found

"""Matrices of all pairs by every measure of similarity, side by side with linear CKA: 1,000 stimuli, in memory."""

from __future__ import annotations

import numpy as np

from headstart.benchmarks.command import timed
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES

STIMULI = 1000
MODELS = 8
# The plain CCAs need more stimuli than the dimensions of two models together.
WIDTHS, NARROW = (384, 2048), (128, 499)
NARROW_MEASURES = ("cca", "pwcca")


def main() -> None:
    """Print what the matrix of some models takes by each measure, and how many times as long as linear CKA."""
    generator = np.random.default_rng(0)
    shared = generator.standard_normal((STIMULI, 100)) * np.geomspace(1, 0.05, 100)
    for names, widths in ((set(SIMILARITY_MEASURES) - set(NARROW_MEASURES), WIDTHS), (set(NARROW_MEASURES), NARROW)):
        sizes = np.linspace(*widths, MODELS).astype(int)
        embeddings = [
            (shared @ generator.standard_normal((100, d)) + generator.standard_normal((STIMULI, d))).astype(np.float32)
            for d in generator.permutation(sizes)
        ]
        for name in [each for each in SIMILARITY_MEASURES if each in names]:
            seconds = {
                measure: timed(lambda: SIMILARITY_MEASURES[measure].pairwise(embeddings))[0]  # noqa: B023
                for measure in (DEFAULT_MEASURE, name)
            }
            ratio = seconds[name] / seconds[DEFAULT_MEASURE]
            print(
                f"{name}: {seconds[name]:.2f} s for {MODELS} models of {widths[0]} to {widths[1]} dimensions, "
                f"{ratio:.1f} times linear CKA",
                flush=True,
            )


if __name__ == "__main__":
    main()

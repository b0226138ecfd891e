"""Mean and matrix of linear CKA against a loop over pairs: 200 embeddings of 1,000 stimuli, in memory."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from headstart.benchmarks.speed.frame import compare, peak_mib
from headstart.metrics import linear_cka, mean_pairwise_cka, pairwise_cka

MODELS, STIMULI = 200, 1000
WIDTHS = (384, 2048)


def random_embeddings(generator: np.random.Generator, models: int = MODELS) -> list[NDArray[np.float32]]:
    """Return random embeddings of different widths, `[stimuli, width]` each."""
    widths = generator.integers(*WIDTHS, models, endpoint=True)
    return [generator.standard_normal((STIMULI, d), dtype=np.float32) for d in widths]


def main(models: int = MODELS) -> None:
    """Print the times of the mean, the matrix and one pair of each model, and the peak memory.

    Args:
        models: Number of models.
    """
    embeddings = random_embeddings(np.random.default_rng(0), models)
    functions: dict[str, Callable[[], object]] = {
        "mean": partial(mean_pairwise_cka, embeddings),
        "matrix": partial(pairwise_cka, embeddings),
        # Every embedding is in one pair, so that the widths are those of the whole loop.
        "pairs": lambda: [linear_cka(x, y) for x, y in zip(embeddings[::2], embeddings[1::2], strict=True)],
    }
    seconds = compare(functions, "mean", repeats=1)
    print(f"loop over all pairs: {(models - 1) * seconds['pairs']:.0f} s, extrapolated from {models // 2} pairs")
    for name in ("mean", "matrix"):
        print(f"{name}: {peak_mib(functions[name])[0]:.0f} MiB besides the embeddings")

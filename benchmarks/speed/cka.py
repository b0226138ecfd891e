"""Mean and matrix of linear CKA against loops over pairs: 200 embeddings of 1,000 stimuli, in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from headstart.benchmarks.speed.frame import timed
from headstart.metrics import linear_cka, mean_pairwise_cka, pairwise_cka

MODELS, STIMULI = 200, 1000
WIDTHS = (384, 2048)

Values = NDArray[np.float32]


def random_embeddings(generator: np.random.Generator) -> list[Values]:
    """Return random embeddings of different widths, `[stimuli, width]` each."""
    widths = generator.integers(*WIDTHS, MODELS, endpoint=True)
    return [generator.standard_normal((STIMULI, d), dtype=np.float32) for d in widths]


def main() -> None:
    """Print the times of the loops over pairs, the mean and the matrix, their ratios, and the peak memory."""
    generator = np.random.default_rng(0)
    embeddings = random_embeddings(generator)
    loops = {"linear_cka": linear_cka, "a textbook's formula": _textbook}
    sampled = dict.fromkeys(loops, 0.0)

    def embeddings_and_pairs() -> Iterator[Values]:
        # A pair is timed between any two embeddings of the mean, so that all meet the same load of the machine. Every
        # embedding is in one pair, so that the widths are those of the whole loop.
        pairs = generator.permutation(MODELS).reshape(-1, 2)
        for i, x in enumerate(embeddings):
            if i % 2:
                a, b = pairs[i // 2]
                for name, pair in loops.items():
                    sampled[name] += timed(lambda: pair(embeddings[a], embeddings[b]))[0]  # noqa: B023
            yield x

    seconds = {"mean": timed(lambda: mean_pairwise_cka(embeddings_and_pairs()))[0] - sum(sampled.values())}
    seconds["matrix"] = timed(lambda: pairwise_cka(embeddings))[0]
    whole = {name: spent * (MODELS - 1) for name, spent in sampled.items()}

    for name, spent in whole.items():
        print(f"loop over all pairs with {name}: {spent:.0f} s, extrapolated from {MODELS // 2} pairs")
    for name, function in (("mean", mean_pairwise_cka), ("matrix", pairwise_cka)):
        ratios = ", ".join(f"{each / seconds[name]:.0f} times faster than with {loop}" for loop, each in whole.items())
        print(f"{name}: {seconds[name]:.1f} s, {ratios}; {_peak(lambda: function(embeddings)):.0f} MiB")  # noqa: B023


def _textbook(x: Values, y: Values) -> float:
    """Compute equation 3 of Kornblith et al., ICML 2019, with centring matrices."""
    centring = np.eye(len(x)) - 1 / len(x)
    k, l = (centring @ (z @ z.T) @ centring for z in (x.astype(np.float64), y.astype(np.float64)))  # noqa: E741
    return float((k * l).sum() / np.sqrt((k * k).sum() * (l * l).sum()))


def _peak(function: Callable[[], object]) -> float:
    """Return the peak memory that a call allocates, in MiB."""
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


if __name__ == "__main__":
    main()

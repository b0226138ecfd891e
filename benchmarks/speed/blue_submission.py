"""A Blue Team search at the size of a challenge, 20 of 141 models."""

from itertools import islice

import numpy as np
from numpy.typing import NDArray

from headstart.benchmarks.speed.frame import timed
from headstart.metrics.similarity.cka import pairwise_cka
from headstart.metrics.similarity.subset_search import Found, PairScores, search_subsets

MODELS, SIZE, STIMULI = 141, 20, 300
FAMILIES = (25, 25, 8)


def main(steps: int = 5000) -> None:
    """Search among models that come in families, and among random similarities, and print scores and times.

    Args:
        steps: Steps of each search.
    """
    for seed, families in enumerate(FAMILIES):
        _search(f"{families} families, seed {seed}", _similarities_of_families(families, seed), SIZE, steps)
    for models, size in ((40, 10), (MODELS, SIZE)):
        values = np.random.default_rng(0).random((models, models))
        _search("independent numbers", (values + values.T) / 2, size, steps)


def _search(title: str, similarity: NDArray[np.float64], size: int, steps: int) -> None:
    def search() -> list[Found]:
        return list(islice(search_subsets(PairScores(similarity), size), steps))

    seconds, found = timed(search)
    best = found[-1].score
    first = next(step for step, each in enumerate(found, 1) if each.score == best)
    print(f"{title}, {size} of {len(similarity)}: {best:.6f} from step {first}, in {seconds:.1f} s", flush=True)


def _similarities_of_families(families: int, seed: int) -> NDArray[np.float64]:
    """Return the linear CKA of models that share directions with all others, and more with those of their family."""
    generator = np.random.default_rng(seed)
    common = generator.normal(size=(STIMULI, 40)) * np.linspace(3, 0.3, 40)
    own = generator.normal(size=(families, STIMULI, 15))
    embeddings = []
    for family in generator.integers(families, size=MODELS):
        rotated = common @ generator.normal(size=(40, 40)) / 6
        noise = generator.normal(size=(STIMULI, 64))
        parts = zip(generator.uniform([0.5, 0, 0.1], [2, 2, 0.9]), (rotated, own[family], noise), strict=True)
        embeddings.append(np.hstack([strength * part for strength, part in parts]))
    return np.asarray(pairwise_cka(embeddings))

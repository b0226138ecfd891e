"""Subsets of stimuli on which models agree little by any measure, evaluated on one subset after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.similarity.catalogue import SimilarityMeasure, mean_over_pairs
from headstart.metrics.similarity.centred_catalog import Embeddings, Floats
from headstart.metrics.similarity.model_subset_search import Progress, Search, sample_values

# Evaluations of the measure; all subsets are enumerated where there are no more.
EVALUATIONS = 2000


def descend(
    measure: SimilarityMeasure,
    embeddings: Embeddings,
    start: Sequence[int],
    seed: int = 0,
    progress: Progress = lambda done, total, note: None,
) -> Search:
    """Find stimuli on which the mean pairwise similarity of the models is low.

    All subsets are enumerated where there are at most `EVALUATIONS`. Otherwise as many random exchanges of a member for
    another stimulus are tried, and those that lower the mean stay.

    Args:
        measure: The measure.
        embeddings: One array per model, `[stimuli, dim]`, rows in the same order of stimuli.
        start: Indices of the subset that is improved, of the same size as the result.
        seed: Seed of the exchanges.
        progress: Called with the evaluations done, all there are, and the mean so far.

    Returns:
        The subset and its mean over pairs; exact where all were enumerated.

    Raises:
        ValueError: The measure is undefined on all stimuli, or on every subset that was tried.
    """
    measure.pairwise(embeddings)  # names a model whose similarity no subset can define

    stimuli = len(embeddings[0])
    exact = math.comb(stimuli, len(start)) <= EVALUATIONS
    if exact:
        subsets = (np.array(subset) for subset in combinations(range(stimuli), len(start)))
        value, chosen = min(((_mean(measure, embeddings, each), each) for each in subsets), key=lambda pair: pair[0])
    else:
        generator = np.random.default_rng(seed)
        chosen, others = np.array(start), np.setdiff1d(np.arange(stimuli), start)
        value = _mean(measure, embeddings, chosen)
        for evaluation in range(EVALUATIONS):
            leaver, joiner = generator.integers(len(chosen)), generator.integers(len(others))
            chosen[leaver], others[joiner] = others[joiner], chosen[leaver]

            changed = _mean(measure, embeddings, chosen)
            if changed < value:
                value = changed
            else:
                chosen[leaver], others[joiner] = others[joiner], chosen[leaver]
            progress(evaluation + 1, EVALUATIONS, f"similarity so far {value:.4f}")

    if math.isinf(value):
        raise ValueError(
            f"size: on none of the {len(start)} stimuli that were tried is {measure.title} defined for every model"
        )
    return Search(tuple(sorted(chosen.tolist())), value, exact)


def random_mean_similarities(
    measure: SimilarityMeasure, embeddings: Embeddings, size: int, count: int = 100, seed: int = 0
) -> Floats:
    """Compute the mean pairwise similarities of random subsets of stimuli, sampled independently, `[count]`.

    Subsets on which the measure is undefined are replaced. Arguments as of `descend`.

    Raises:
        ValueError: The measure is undefined on nearly all subsets.
    """
    return sample_values(lambda subset: _mean(measure, embeddings, subset), len(embeddings[0]), size, count, seed)


def _mean(measure: SimilarityMeasure, embeddings: Embeddings, members: NDArray[np.intp]) -> float:
    """Compute the mean over pairs on a subset, infinite where it is undefined."""
    try:
        return mean_over_pairs(measure.pairwise([embedding[members] for embedding in embeddings])[0])
    except ValueError:
        return math.inf

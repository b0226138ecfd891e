"""The subset of models whose representations agree most, from the matrix of their similarities."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.similarity.densest_subset_proof import DensestSubset

# Is called with what is done, all there is to do, and how good the best so far is.
Progress = Callable[[int, int, str], object]

# All subsets are enumerated where they are no more: a few seconds.
EXACT_LIMIT = 1_000_000
# Operations of branch and bound, cubes of matrices' sides, where no time is set: about 15 s on one core.
EFFORT = 1e10
# Subsets enumerated at a time: bounds the memory.
CHUNK = 20_000
# Subsets that are grown greedily and then improved by exchanges; the best of one per model.
STARTS = 32
# Exchanges that gain less, in sums of similarities, are taken for rounding.
TOLERANCE = 1e-10
# What the progress of branch and bound is counted in.
PERCENT = 100
# Draws per random subset that is wanted, before a catalog of copies is given up.
REDRAWS = 100


@dataclass(frozen=True)
class Search:
    """What a search found.

    Attributes:
        chosen: Indices of the subset, ascending.
        value: Mean over its pairs of models: of similarities, or of biased linear CKA.
        exact: Whether it is certain that no other subset of this size is better.
        bound: No other subset of this size has a higher value, where that is known.
    """

    chosen: tuple[int, ...]
    value: float
    exact: bool
    bound: float | None = None


def best_model_subset(
    similarity: NDArray[np.floating],
    size: int,
    seconds: float | None = None,
    progress: Progress = lambda done, total, note: None,
) -> Search:
    """Find the models with the highest mean pairwise similarity.

    All subsets are enumerated where there are at most `EXACT_LIMIT`. Otherwise a subset is grown greedily from every
    model, and the best `STARTS` of these are improved by exchanges of one model for another, the best exchange first,
    until none gains. Branch and bound then looks for a better one, and for a proof that there is none.

    Args:
        similarity: Similarity of every pair of models, symmetric `[models, models]`; its diagonal is not read.
        size: Models to choose.
        seconds: How long branch and bound may take; by default as long as `EFFORT` lasts, whatever the machine, so that
            the result depends on the similarities alone.
        progress: Called with how much of branch and bound is done, how much is at most to be done, and the best value
            and bound so far.

    Returns:
        The subset, its mean similarity over pairs, and an upper bound on that of any other.

    Raises:
        ValueError: `size` is below 2 or above the number of models; or a similarity is NaN or infinite.
    """
    check_size(size, len(similarity), "models")
    pairs = _without_diagonal(similarity)
    if not np.isfinite(pairs).all():
        raise ValueError("similarity: contains NaN or infinity")
    if math.comb(len(pairs), size) <= EXACT_LIMIT:
        chosen = _enumerate(pairs, size)
        value = _mean_pair(pairs, chosen)
        return Search(tuple(sorted(chosen.tolist())), value, exact=True, bound=value)
    grown = sorted(_grow(pairs, size), key=lambda members: -_mean_pair(pairs, members))
    improved = [_improve(pairs, members) for members in grown[:STARTS]]
    chosen = max(improved, key=lambda members: _mean_pair(pairs, members))
    search = DensestSubset(pairs, chosen, lambda members: _improve(pairs, members))
    search.search(_limit(search, size * (size - 1), seconds, progress))
    value = _mean_pair(pairs, search.chosen)
    bound = value if search.proved else search.bound / (size * (size - 1))
    return Search(tuple(sorted(search.chosen.tolist())), value, search.proved, bound)


def _limit(
    search: DensestSubset, ordered_pairs: int, seconds: float | None, progress: Progress
) -> Callable[[float], bool]:
    """Give what tells branch and bound when to end, and shows how far it is meanwhile."""
    start, done = time.monotonic(), 0.0
    total = EFFORT if seconds is None else seconds

    def over(operations: float) -> bool:
        nonlocal done
        done = done + operations if seconds is None else time.monotonic() - start
        share = min(1.0, done / total) if total > 0 else 1.0
        values = (search.value / ordered_pairs, search.bound / ordered_pairs)
        progress(int(PERCENT * share), PERCENT, "best {:.4f}, at most {:.4f}".format(*values))
        return share >= 1

    return over


def random_model_subsets(
    similarity: NDArray[np.floating], size: int, draws: int = 100, seed: int = 0
) -> NDArray[np.float64]:
    """Give the mean pairwise similarities of random subsets of models, drawn independently, `[draws]`.

    Arguments and errors as of `best_model_subset`.
    """
    check_size(size, len(similarity), "models")
    pairs = _without_diagonal(similarity)
    return draw_values(lambda subset: _mean_pair(pairs, subset), len(pairs), size, draws, seed)


def draw_values(
    value: Callable[[NDArray[np.intp]], float], available: int, size: int, draws: int, seed: int
) -> NDArray[np.float64]:
    """Give the values of random subsets, drawn independently, `[draws]`.

    Args:
        value: Gives the value of a subset, `[size]`; where that is infinite, another is drawn instead.
        available: Things to choose from.
        size: Members of a subset.
        draws: How many.
        seed: Seed of the draws.

    Raises:
        ValueError: Nearly all values are infinite.
    """
    generator = np.random.default_rng(seed)
    subsets = (generator.choice(available, size, replace=False) for _ in range(REDRAWS * draws))
    values = list(islice((found for subset in subsets if math.isfinite(found := value(subset))), draws))
    if len(values) < draws:
        raise ValueError(
            f"size: hardly any {size} stimuli are told apart by every model; the catalog holds too many copies"
        )
    return np.array(values, dtype=np.float64)


def check_size(size: int, available: int, things: str) -> None:
    """Refuse by a ValueError a size of a subset below 2 or above the available things, named in the plural."""
    if not 2 <= size <= available:
        raise ValueError(
            f"size: {size} of {available} {things} cannot be chosen; give at least 2 and at most {available}"
        )


def _without_diagonal(similarity: NDArray[np.floating]) -> NDArray[np.float64]:
    pairs = np.array(similarity, dtype=np.float64)
    np.fill_diagonal(pairs, 0)
    return pairs


def _mean_pair(pairs: NDArray[np.float64], members: NDArray[np.intp]) -> float:
    """Average over the pairs of a subset."""
    return float(pairs[np.ix_(members, members)].sum() / (len(members) * (len(members) - 1)))


def _enumerate(pairs: NDArray[np.float64], size: int) -> NDArray[np.intp]:
    """Find the best subset by going through all of them, or of their complements where those are smaller."""
    models = len(pairs)
    by_complement = size > models - size
    # What every member adds to the sum over pairs: leaving one out loses its row, and a pair left out is lost twice.
    weights = -pairs.sum(axis=1) if by_complement else np.zeros(models)
    subsets = combinations(range(models), models - size if by_complement else size)
    best, best_sum = np.empty(0, dtype=np.intp), -np.inf
    while rows := list(islice(subsets, CHUNK)):
        chunk = np.array(rows, dtype=np.intp)
        sums = weights[chunk].sum(axis=1)
        for first, second in combinations(range(chunk.shape[1]), 2):
            sums += pairs[chunk[:, first], chunk[:, second]]
        leader = int(np.argmax(sums))
        if sums[leader] > best_sum:
            best, best_sum = chunk[leader], sums[leader]
    return np.setdiff1d(np.arange(models), best) if by_complement else best


def _grow(pairs: NDArray[np.float64], size: int) -> list[NDArray[np.intp]]:
    """Grow a subset from every model, always by the model most similar to its members; give those that differ."""
    models = np.arange(len(pairs))
    chosen = np.eye(len(pairs), dtype=bool)
    sums = pairs.copy()
    for _ in range(size - 1):
        best = np.where(chosen, -np.inf, sums).argmax(axis=1)
        chosen[models, best] = True
        sums += pairs[best]
    return [np.flatnonzero(row) for row in np.unique(chosen, axis=0)]


def _improve(pairs: NDArray[np.float64], members: NDArray[np.intp]) -> NDArray[np.intp]:
    """Exchange a member for another model, the best exchange first, until none gains."""
    members = members.copy()
    while True:
        others = np.setdiff1d(np.arange(len(pairs)), members)
        sums = pairs[:, members].sum(axis=1)
        gains = sums[others] - sums[members][:, None] - pairs[np.ix_(members, others)]
        leaver, joiner = np.unravel_index(np.argmax(gains), gains.shape)
        if gains[leaver, joiner] <= TOLERANCE:
            return members
        members[leaver] = others[joiner]

"""The subset of models whose representations agree most, from the matrix of their similarities."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.similarity.densest_subset import DensestSubset

# Called with what is done, all there is to do, and a note on the best so far.
Progress = Callable[[int, int, str], object]

# All subsets are enumerated where there are no more: a few seconds.
EXACT_LIMIT = 1_000_000
# Operations of branch and bound, cubes of matrices' sides, where no time is set: about 15 s on one core.
EFFORT = 1e10
# Subsets enumerated at a time: bounds the memory.
CHUNK = 20_000
# Greedy subsets that are improved by exchanges; the best of one per model.
STARTS = 32
# Exchanges that gain less, in sums of similarities, count as rounding.
TOLERANCE = 1e-10
# Units of the progress of branch and bound.
PERCENT = 100
# Attempts per random subset, before the search for defined values ends with an error.
ATTEMPTS = 100


@dataclass(frozen=True)
class Search:
    """The result of a search.

    Attributes:
        chosen: Indices of the subset, ascending.
        value: Mean over its pairs of models: of similarities, or of biased linear CKA.
        exact: Whether it is certain that no other subset of this size is better.
        bound: Upper bound on the value of any subset of this size, where one is known.
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
    model. The best `STARTS` of these are improved by exchanges of one model for another, the best exchange first, until
    none improves them. Branch and bound then looks for a better one, and for a proof that there is none.

    Args:
        similarity: Similarity of every pair of models, symmetric `[models, models]`; its diagonal is not read.
        size: Models to choose.
        seconds: How long branch and bound may take. The default is `EFFORT` operations on any machine, so the result
            depends on the similarities alone.
        progress: Called with the amount of branch and bound that is done, its maximum, and the best value and bound so
            far.

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
    """Return the condition on which branch and bound ends, which also shows the progress."""
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


def random_model_subsets(similarity: NDArray[np.floating], size: int, count: int = 100, seed: int = 0) -> Floats:
    """Compute the mean pairwise similarities of random subsets of models, sampled independently, `[count]`.

    Arguments and errors as for `best_model_subset`.
    """
    check_size(size, len(similarity), "models")
    pairs = _without_diagonal(similarity)
    return sample_values(lambda subset: _mean_pair(pairs, subset), len(pairs), size, count, seed)


def sample_values(value: Callable[[Indices], float], available: int, size: int, count: int, seed: int) -> Floats:
    """Compute the values of random subsets, sampled independently, `[count]`.

    Args:
        value: Returns the value of a subset, `[size]`; a subset of infinite value is replaced by another.
        available: Number of items to choose from.
        size: Members of a subset.
        count: Number of subsets.
        seed: Seed of the samples.

    Raises:
        ValueError: Nearly all values are infinite.
    """
    generator = np.random.default_rng(seed)
    subsets = (generator.choice(available, size, replace=False) for _ in range(ATTEMPTS * count))
    values = list(islice(filter(math.isfinite, map(value, subsets)), count))
    if len(values) < count:
        raise ValueError(
            f"size: every model distinguishes hardly any {size} stimuli; the catalog holds too many copies"
        )
    return np.array(values, dtype=np.float64)


def check_size(size: int, available: int, items: str) -> None:
    """Raise a ValueError for a size of a subset below 2 or above the number of items; their name is a plural."""
    if not 2 <= size <= available:
        raise ValueError(
            f"size: {size} of {available} {items} cannot be chosen; give at least 2 and at most {available}"
        )


def _without_diagonal(similarity: NDArray[np.floating]) -> Floats:
    pairs = np.array(similarity, dtype=np.float64)
    np.fill_diagonal(pairs, 0)
    return pairs


def _mean_pair(pairs: Floats, members: Indices) -> float:
    """Average over the pairs of a subset."""
    return float(pairs[np.ix_(members, members)].sum() / (len(members) * (len(members) - 1)))


def _enumerate(pairs: Floats, size: int) -> Indices:
    """Return the best of all subsets, enumerated by their complements where those are smaller."""
    models = len(pairs)
    by_complement = size > models - size
    # The sum over pairs loses the row of every model that is left out, and so a pair of two of them twice.
    weights = -pairs.sum(axis=1) if by_complement else np.zeros(models)
    subsets = combinations(range(models), models - size if by_complement else size)
    best, best_sum = np.empty(0, dtype=np.intp), -np.inf
    while block := list(islice(subsets, CHUNK)):
        chunk = np.array(block, dtype=np.intp)
        sums = weights[chunk].sum(axis=1)
        for first, second in combinations(range(chunk.shape[1]), 2):
            sums += pairs[chunk[:, first], chunk[:, second]]

        leader = int(np.argmax(sums))
        if sums[leader] > best_sum:
            best, best_sum = chunk[leader], sums[leader]
    return np.setdiff1d(np.arange(models), best) if by_complement else best


def _grow(pairs: Floats, size: int) -> list[Indices]:
    """Grow a subset from every model, always by the model most similar to its members; return the different ones."""
    models = np.arange(len(pairs))
    chosen = np.eye(len(pairs), dtype=bool)
    sums = pairs.copy()
    for _ in range(size - 1):
        best = np.where(chosen, -np.inf, sums).argmax(axis=1)
        chosen[models, best] = True
        sums += pairs[best]
    return [np.flatnonzero(row) for row in np.unique(chosen, axis=0)]


def _improve(pairs: Floats, members: Indices) -> Indices:
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

"""The search for a subset of high score: greedy growth, then exchanges, from seeded starts. It proves nothing."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats, Indices

# A score that is undefined is this, or several times this where a search should know how far it is from a defined one.
UNDEFINED = -1e9
# Gains below this count as rounding.
TOLERANCE = 1e-9
# A quarter of the members may join, or be exchanged, at once.
SHARE = 4
# For exchanges of one member: how many leavers are tried, and how many joiners with each.
LEAVERS, JOINERS = 8, 64
# Every fourth start is fresh; the others keep a random half of the best subset so far.
FRESH, KEPT = 4, 2
# Attempts at one random subset with a score, before the search for them ends with an error.
ATTEMPTS = 100


class SubsetScores(ABC):
    """The scores of subsets of some items; `UNDEFINED` or less where a score is undefined.

    Attributes:
        items: Number of items to choose from.
        kind: What the items are, in the plural.
        block: How many items are valued together.
        candidates: Indices of the items that may join at present.
    """

    kind = "items"
    block = 1024

    def __init__(self, items: int) -> None:
        self.items = items
        self.candidates: Indices = np.arange(0)

    def offer(self, candidates: Indices) -> None:
        """Set the items that may join."""
        self.candidates = candidates

    @abstractmethod
    def score(self, members: Indices) -> float:
        """Return the score of a subset of 2 or more."""

    @abstractmethod
    def joining(self, members: Indices, positions: Indices) -> Floats:
        """Return the scores of a subset of 1 or more with each of the candidates at some positions, about."""

    @abstractmethod
    def leaving(self, members: Indices) -> Floats:
        """Return the scores of a subset of 3 or more without each of its members, about."""


class PairScores(SubsetScores):
    """The mean similarity over all pairs of models of a subset.

    Args:
        similarity: Similarity of every pair of models, symmetric `[models, models]`; its diagonal is not read.
    """

    kind = "models"

    def __init__(self, similarity: NDArray[np.floating]) -> None:
        super().__init__(len(similarity))
        self._pairs = np.array(similarity, dtype=np.float64)
        np.fill_diagonal(self._pairs, 0)

    def score(self, members: Indices) -> float:
        """Return the mean over pairs of a subset."""
        return float(self._pairs[np.ix_(members, members)].sum() / (len(members) * (len(members) - 1)))

    def joining(self, members: Indices, positions: Indices) -> Floats:
        """Return the means with each of some candidates."""
        inside, size = self._pairs[np.ix_(members, members)].sum(), len(members)
        joined = self._pairs[np.ix_(self.candidates[positions], members)].sum(axis=1)
        return np.asarray((inside + 2 * joined) / (size * (size + 1)))

    def leaving(self, members: Indices) -> Floats:
        """Return the means without each of the members."""
        inside, size = self._pairs[np.ix_(members, members)], len(members)
        return np.asarray((inside.sum() - 2 * inside.sum(axis=1)) / ((size - 1) * (size - 2)))


@dataclass(frozen=True)
class FoundSubset:
    """A subset that a search found.

    Attributes:
        members: Indices of its items, ascending.
        score: Its score.
    """

    members: tuple[int, ...]
    score: float


def search_subsets(scores: SubsetScores, size: int, seed: int = 0) -> Iterator[FoundSubset]:
    """Search for subsets of high score, start by start and step by step.

    A start is a random pair, or a random half of the best subset so far. It grows by the candidates with which it
    scores highest, a quarter of its size at once. A step exchanges members: those without which the subset scores
    highest for those with which it does, as many as raise the score, from a quarter of the members to one. The search
    goes on from the next start when a whole round through the items brings no exchange.

    Args:
        scores: The scores.
        size: Items of a subset.
        seed: Seed of the starts and of the order of the items. The same seed gives the same subsets.

    Yields:
        The best subset so far, after each step, without end. None of them need be the best there is. All items
        together are the only subset of their size, and the end.

    Raises:
        ValueError: `size` is below 2 or above the number of items.
    """
    check_size(size, scores.items, scores.kind)
    if size == scores.items:
        everything = np.arange(size)
        yield FoundSubset(tuple(everything.tolist()), scores.score(everything))
        return

    generator = np.random.default_rng(seed)
    best: FoundSubset | None = None
    for start in count():
        if best is None or start % FRESH == 0:
            members = generator.choice(scores.items, 2, replace=False)
        else:
            members = generator.choice(best.members, max(2, size // KEPT), replace=False)

        for climbed, score in _climb(scores, _grow(scores, members, size, generator), generator):
            if best is None or score > best.score + TOLERANCE:
                best = FoundSubset(tuple(np.sort(climbed).tolist()), score)
            yield best


def random_scores(scores: SubsetScores, size: int, draws: int, seed: int = 0) -> Floats:
    """Compute the scores of random subsets, sampled independently, `[draws]`; subsets without a score are replaced.

    Raises:
        ValueError: As for `search_subsets`; or nearly all subsets have no score.
    """
    check_size(size, scores.items, scores.kind)
    generator = np.random.default_rng(seed)
    values: list[float] = []
    for _ in range(draws):
        attempts = (scores.score(generator.choice(scores.items, size, replace=False)) for _ in range(ATTEMPTS))
        value = next((value for value in attempts if value > UNDEFINED), None)
        if value is None:
            raise ValueError(
                f"size: hardly any {size} {scores.kind} have a score, because a model does not tell them apart; "
                "leave out copies, or give a larger size"
            )
        values.append(value)
    return np.array(values)


def check_size(size: int, available: int, items: str) -> None:
    """Raise a ValueError for a size of a subset below 2 or above the number of items; their name is a plural."""
    if not 2 <= size <= available:
        raise ValueError(
            f"size: {size} of {available} {items} cannot be chosen; give at least 2 and at most {available}"
        )


def _grow(scores: SubsetScores, members: Indices, size: int, generator: np.random.Generator) -> Indices:
    """Add the candidates with which a subset scores highest, until it has its size."""
    while len(members) < size:
        others = np.setdiff1d(np.arange(scores.items), members)
        scores.offer(generator.permutation(others)[: scores.block])
        joined = scores.joining(members, np.arange(len(scores.candidates)))
        joiners = scores.candidates[_best(joined)[: min(size - len(members), max(1, len(members) // SHARE))]]
        members = np.append(members, joiners)
    return members


def _climb(scores: SubsetScores, members: Indices, generator: np.random.Generator) -> Iterator[tuple[Indices, float]]:
    """Yield a subset and its score after each exchange, block by block, until a round through all items brings none."""
    value, unchanged = scores.score(members), 0
    blocks = math.ceil(scores.items / scores.block)
    while unchanged < blocks:
        for block in np.array_split(generator.permutation(scores.items), blocks):
            scores.offer(block)
            unchanged += 1
            while (exchanged := _exchange(scores, members, value)) is not None:
                (members, value), unchanged = exchanged, 1
                yield members, value
            yield members, value
            if unchanged == blocks:
                break


def _exchange(scores: SubsetScores, members: Indices, value: float) -> tuple[Indices, float] | None:
    """Return a subset with some members exchanged for candidates, and its higher score; None if none was found."""
    positions = np.flatnonzero(~np.isin(scores.candidates, members))
    if not len(positions):
        return None
    positions = positions[_best(scores.joining(members, positions))]
    # Of two members, both are equally good leavers.
    leavers = _best(scores.leaving(members)) if len(members) > 2 else np.arange(2)

    several = min(len(members) // SHARE, len(positions))
    while several > 1:
        changed = members.copy()
        changed[leavers[:several]] = scores.candidates[positions[:several]]
        if (score := scores.score(changed)) > value + TOLERANCE:
            return changed, score
        several //= 2

    # Who joins best depends on who leaves.
    near = positions[:JOINERS]
    for leaver in leavers[:LEAVERS]:
        rest = np.delete(members, leaver)
        joiner = near[np.argmax(scores.joining(rest, near))]
        changed = members.copy()
        changed[leaver] = scores.candidates[joiner]
        if (score := scores.score(changed)) > value + TOLERANCE:
            return changed, score
    return None


def _best(values: Floats) -> Indices:
    """Return the order of values from the highest; equal ones stay in their order, so that results repeat."""
    return np.argsort(-values, kind="stable")

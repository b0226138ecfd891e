"""The source pools of a study: all subsets of the sources of one size, or some that are drawn in balanced batches."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from headstart.metrics.arrays import Floats, Indices
from headstart.output.errors import UserError

# Pools up to which all are studied.
MOST_POOLS = 1_000_000
# Pools that are drawn beyond, and fewer where sources^2 x targets x metrics are above `LARGE`. 1,000 pools of 500
# sources with 100 targets and 5 metrics take a quarter of a minute.
DRAWN, FEWER, LARGE = 10_000, 1_000, 25_000_000
# Independent batches of drawn pools, whose differences are the standard error.
BATCHES = 40
# Integers that every reader of JSON keeps; of larger ones, their power of ten is stored.
EXACT = 2**53

# Pools `[pools, k]`, and the batch of each, `[pools]`, in ascending order.
Block = tuple[Indices, Indices]


@dataclass(frozen=True)
class Pools:
    """The pools of a study.

    Attributes:
        sources: Number of all sources.
        size: Sources in a pool.
        drawn: Number of pools that are drawn; None for all.
        seed: Seed of drawing.
    """

    sources: int
    size: int
    drawn: int | None = None
    seed: int = 0

    @property
    def all(self) -> int:
        """Number of all pools."""
        return math.comb(self.sources, self.size)

    @property
    def count(self) -> int:
        """Number of pools that are studied."""
        return self.drawn or self.all

    @property
    def batches(self) -> int:
        """Number of batches: one if all pools are studied."""
        return BATCHES if self.drawn else 1

    def blocks(self, most: int) -> Iterator[Block]:
        """Yield the pools in blocks.

        Args:
            most: Pools in a block at most.
        """
        for pools, batches in self._some_batches(most) if self.drawn else self._all_blocks(most):
            for start in range(0, len(pools), most):
                yield pools[start : start + most], batches[start : start + most]

    def _all_blocks(self, most: int) -> Iterator[Block]:
        pools = combinations(range(self.sources), self.size)
        while len(block := np.array(list(islice(pools, most)), dtype=np.intp)):
            yield block, np.zeros(len(block), dtype=np.intp)

    def _some_batches(self, most: int) -> Iterator[Block]:
        """Yield as many batches at once as fit into a block, or one."""
        sizes = [len(part) for part in np.array_split(np.arange(self.count), BATCHES)]
        generators = np.random.default_rng(self.seed).spawn(BATCHES)
        at_once = max(1, most // sizes[0])
        for start in range(0, BATCHES, at_once):
            batches = range(start, min(start + at_once, BATCHES))
            drawn = [draw_batch(generators[i], self.sources, self.size, sizes[i]) for i in batches]
            yield np.concatenate(drawn), np.repeat(batches, sizes[batches.start : batches.stop])

    @property
    def settings(self) -> dict[str, int | None]:
        """The choice of the pools that are studied, as documents have it; None if all are."""
        return {"drawn_pools": self.drawn, "seed": self.seed if self.drawn else None}

    @property
    def all_in_json(self) -> int | str:
        """Number of all pools, as text if not every reader of JSON keeps it."""
        return self.all if self.all <= EXACT else in_words(self.all)

    def __str__(self) -> str:
        """Return how many of how many pools are studied."""
        if self.drawn is None:
            return f"all {self.all:,} pools"
        return f"{self.drawn:,} pools drawn at random of {in_words(self.all)}"


def choose_pools(scores: Floats, size: int, pools: int | None, seed: int) -> Pools:
    """Decide whether pools are drawn.

    Args:
        scores: Scores of the study, `[m, n, t]`.
        size: Sources in a pool.
        pools: Number of pools to draw if there are more; by default `DRAWN` or `FEWER` if there are more than
            `MOST_POOLS`.
        seed: Seed of drawing.

    Raises:
        UserError: Fewer pools are to be drawn than there are batches.
    """
    sources = scores.shape[1]
    if math.comb(sources, size) <= (pools or MOST_POOLS):
        return Pools(sources, size)
    if pools is not None and pools < BATCHES:
        raise UserError(f"pools: {pools} is given; {BATCHES} or more are needed for a standard error")
    return Pools(sources, size, pools or (FEWER if scores.size * sources > LARGE else DRAWN), seed)


def draw_batch(generator: np.random.Generator, sources: int, size: int, count: int) -> Indices:
    """Draw pools `[count, size]` in which all sources are equally often, up to one pool.

    Random orders of all sources are cut into pools one after the other. In an order that begins within a pool, sources
    that the pool has already come later. Every pool for itself is drawn from all pools with equal probability.
    """
    pools = np.empty((count, size), dtype=np.intp)
    rest = generator.permutation(sources)
    for pool in pools:
        members, rest = rest[:size], rest[size:]
        missing = size - len(members)
        if missing:
            others = generator.permutation(np.setdiff1d(np.arange(sources), members))
            rest = generator.permutation(np.concatenate([others[missing:], members]))
            members = np.concatenate([members, others[:missing]])
        pool[:] = members
    return np.sort(pools, axis=1)


def in_words(number: int) -> str:
    """Return a number with commas, or the power of ten that is nearest to a large one."""
    return f"{number:,}" if number <= EXACT else f"about 10^{round(math.log10(number))}"

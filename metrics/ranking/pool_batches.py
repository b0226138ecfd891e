"""Sums over the experiments of each batch of pools, and the standard errors that drawn pools give a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.ranking.outcomes import MeanAgreement, Wins, agreements_across
from headstart.metrics.ranking.pools import Pools


@dataclass
class Batch:
    """Sums over the experiments of a batch of pools; t targets, e measures, m metrics.

    Attributes:
        wins: Experiments that each metric wins.
        vectors: Sums of the agreement vectors, `[t, e, m (m - 1) / 2]`.
        defined: Experiments with an outcome, `[t, e]`.
        agreements: Agreement of experiments with the same pool that differ in the target or the measure alone.
    """

    wins: Wins
    vectors: Floats
    defined: NDArray[np.int64]
    agreements: dict[str, MeanAgreement] = field(
        default_factory=lambda: {name: MeanAgreement() for name in ("target", "measure")}
    )

    @classmethod
    def zeros(cls, targets: int, measures: int, metrics: int) -> Batch:
        """Start to sum at zero."""
        vectors = np.zeros((targets, measures, metrics * (metrics - 1) // 2))
        return cls(Wins.zeros(targets, measures, metrics), vectors, np.zeros((targets, measures), dtype=np.int64))

    def add(self, outcomes: Floats, tie_tolerance: float, vectors: Floats, defined: Flags) -> None:
        """Add pools.

        Args:
            outcomes: Their outcomes `[pools, t, e, m]`, NaN where undefined.
            tie_tolerance: Differences of outcomes up to this are ties.
            vectors: The `agreement_vectors` of the outcomes, `[pools, t, e, m (m - 1) / 2]`.
            defined: Where these are defined, `[pools, t, e]`.
        """
        self.wins.add(outcomes, tie_tolerance)
        self.vectors += vectors.sum(axis=0)
        self.defined += defined.sum(axis=0)
        self.agreements["target"].add(vectors.sum(axis=1), defined.sum(axis=1))
        self.agreements["measure"].add(vectors.sum(axis=2), defined.sum(axis=2))


def over_pools(batches: Sequence[Batch], pools: Pools) -> tuple[Floats, NDArray[np.int64]]:
    """Estimate the mean agreement of experiments that differ in the pool alone.

    Args:
        batches: Two batches of drawn pools or more.
        pools: The pools.

    Returns:
        Means by target and measure, `[t, e]`, NaN where there is no pair, and the number of pairs, `[t, e]`.
    """
    vectors, defined = (np.stack([getattr(batch, name) for batch in batches]) for name in ("vectors", "defined"))
    # Of all pools, the same share has an outcome as of those drawn. What it corrects vanishes long before 10^18.
    studied = pools.count * len(batches) / pools.batches
    population = min(pools.all, 10**18) * (defined.sum(axis=0) / studied)
    return agreements_across(vectors, defined, population)

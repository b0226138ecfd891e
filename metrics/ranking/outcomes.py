"""Outcomes of experiments: win rates of metrics, and agreement as the mean Kendall tau-b over all pairs.

The tau-b of two outcomes over m metrics is the product of their agreement vectors. An agreement vector holds the signs
of the differences between all pairs of metrics, scaled to norm 1. The sum over all pairs of N experiments is then (|sum
u|^2 - N) / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.ranking.pools import Pools

Ties = Literal["split", "last"]


@dataclass(frozen=True)
class Wins:
    """Counts of experiments that each metric wins; t targets, e measures, m metrics.

    Attributes:
        split: Experiments won, a tie counted in equal shares, `[t, e, m]`.
        last: Experiments won, a tie counted for the last of the metrics, `[t, e, m]`.
        tied: Experiments with several winners `[t, e]`.
        decided: Experiments in which the measure is defined for a metric `[t, e]`.
    """

    split: Floats
    last: Floats
    tied: NDArray[np.int64]
    decided: NDArray[np.int64]

    @classmethod
    def zeros(cls, targets: int, measures: int, metrics: int) -> Wins:
        """Start to count at zero."""
        won = np.zeros((targets, measures, metrics))
        count = np.zeros((targets, measures), dtype=np.int64)
        return cls(won, won.copy(), count, count.copy())

    def add(self, outcomes: Floats, tie_tolerance: float) -> None:
        """Count more experiments.

        Args:
            outcomes: Values that the metrics reached `[pools, t, e, m]`, NaN where undefined.
            tie_tolerance: A metric that is this close to the best one wins, too.
        """
        reached = np.where(np.isnan(outcomes), -np.inf, outcomes)
        best = reached.max(axis=-1, keepdims=True)
        won = (reached >= best - tie_tolerance) & np.isfinite(best)
        winners = won.sum(axis=-1)
        self.split[...] += (won / np.maximum(winners, 1)[..., None]).sum(axis=0)
        winners_from_here_on = won[..., ::-1].cumsum(axis=-1)[..., ::-1]
        self.last[...] += (won & (winners_from_here_on == 1)).sum(axis=0)
        self.tied[...] += (winners > 1).sum(axis=0)
        self.decided[...] += (winners > 0).sum(axis=0)

    def __add__(self, other: Wins) -> Wins:
        """Count the experiments of both."""
        return Wins(*(mine + its for mine, its in zip(self._counts(), other._counts(), strict=True)))

    def __sub__(self, other: Wins) -> Wins:
        """Count the experiments without some of them."""
        return Wins(*(mine - its for mine, its in zip(self._counts(), other._counts(), strict=True)))

    def _counts(self) -> tuple[Any, ...]:
        return self.split, self.last, self.tied, self.decided

    def percent(self, ties: Ties, without: int | None = None) -> Floats:
        """Compute the win rates.

        Args:
            ties: Whether a tie is split among its winners, or won by the last of them.
            without: Index of a target to leave out.

        Returns:
            Percentages `[m, e + 1]`, in the last column the mean over the measures; NaN where nothing is decided.
        """
        kept = np.arange(len(self.decided)) != without
        won = (self.split if ties == "split" else self.last)[kept].sum(axis=0)
        decided = self.decided[kept].sum(axis=0)
        is_decided = decided > 0
        rates = np.where(is_decided, 100 * won.T / np.maximum(decided, 1), np.nan)
        average = rates[:, is_decided].mean(axis=1) if is_decided.any() else rates[:, 0]
        return np.column_stack([rates, average])

    def percent_without_each(self, ties: Ties) -> Floats:
        """Compute the win rates with each target left out, in per cent, `[t, m, e + 1]`; NaN for one target."""
        return np.stack([self.percent(ties, target) for target in range(len(self.decided))])

    def tied_percent(self) -> Floats:
        """Compute the share of experiments with several winners in per cent, `[e]`, NaN where nothing is decided."""
        decided = self.decided.sum(axis=0)
        return np.where(decided > 0, 100 * self.tied.sum(axis=0) / np.maximum(decided, 1), np.nan)


def round_to_100(percentages: Sequence[float] | Floats) -> list[int]:
    """Round percentages that add up to 100 so that they still do, as the paper's tables do.

    The method of largest remainders: all are rounded down, and those that lost most get one each until the sum is 100.
    """
    exact = np.asarray(percentages, dtype=np.float64)
    down = np.floor(exact)
    missing = round(float(exact.sum() - down.sum()))
    largest = np.argsort(-(exact - down), kind="stable")[:missing]
    down[largest] += 1
    return [int(value) for value in down]


def agreement_vectors(outcomes: Floats, tie_tolerance: float) -> tuple[Floats, Flags]:
    """Turn outcomes into vectors whose inner products are Kendall's tau-b.

    Args:
        outcomes: Values that m metrics reached `[..., m]`, NaN where it is undefined.
        tie_tolerance: Differences up to this are ties.

    Returns:
        Vectors `[..., m (m - 1) / 2]` of norm 1, and where they are defined, `[...]`. Tau-b is undefined where the
        outcome of a metric is undefined or all are tied. Undefined vectors are 0.
    """
    first, second = np.triu_indices(outcomes.shape[-1], 1)
    difference = outcomes[..., first] - outcomes[..., second]
    signs = np.where(np.abs(difference) <= tie_tolerance, 0, np.sign(difference))
    untied = np.abs(signs).sum(axis=-1)
    # A sum with NaN in it is NaN, and not above 0.
    defined = untied > 0
    scaled = np.divide(signs, np.sqrt(untied)[..., None], out=np.zeros_like(signs), where=defined[..., None])
    return scaled, defined


def group_agreements(vectors: Floats, count: NDArray[np.int64]) -> Floats:
    """Compute the mean agreement over all pairs within each group of experiments.

    Args:
        vectors: Sum of the agreement vectors of each group's experiments, `[..., vector]`.
        count: Experiments of each group with a defined outcome, `[...]`.

    Returns:
        `[...]`, NaN for a group without a pair.
    """
    pairs = count * (count - 1) / 2
    total = ((vectors**2).sum(axis=-1) - count) / 2
    return _quotients(total, pairs)


def agreements_across(
    vectors: Floats, count: NDArray[np.int64], population: Floats | float = np.inf
) -> tuple[Floats, NDArray[np.int64]]:
    """Estimate the mean agreement over all pairs within each group, from experiments that were drawn in batches.

    Only pairs from different batches count: batches are independent, and the experiments of a batch are not.

    Args:
        vectors: Sum of the agreement vectors of the experiments of each batch and group, `[batches, ..., vector]`.
        count: Experiments of each batch and group with a defined outcome, `[batches, ...]`.
        population: Experiments of each group that could be drawn and have a defined outcome, `[...]`. An experiment may
            be drawn twice, but is no pair with itself.

    Returns:
        Means `[...]`, NaN for a group without a pair, and the number of pairs `[...]`.
    """
    pairs = (count.sum(axis=0) ** 2 - (count**2).sum(axis=0)) // 2
    total = ((vectors.sum(axis=0) ** 2).sum(axis=-1) - (vectors**2).sum(axis=(0, -1))) / 2
    means = _quotients(total, pairs)
    with np.errstate(invalid="ignore", divide="ignore"):
        return means - (1 - means) / (population - 1), pairs


@dataclass
class MeanAgreement:
    """The unweighted mean over groups of experiments of the mean agreement over all pairs within a group.

    Attributes:
        total: Sum of the means of groups.
        groups: Groups that have a pair.
        pairs: Pairs of experiments with defined outcomes.
    """

    total: float = 0.0
    groups: int = 0
    pairs: int = 0

    def add(self, vectors: Floats, count: NDArray[np.int64]) -> Floats:
        """Add groups.

        Args:
            vectors: Sum of the agreement vectors of each group's experiments, `[..., vector]`.
            count: Experiments of each group with a defined outcome, `[...]`.

        Returns:
            The means of `group_agreements`.
        """
        means = group_agreements(vectors, count)
        self.add_means(means, count * (count - 1) // 2)
        return means

    def add_means(self, means: Floats, pairs: NDArray[np.int64]) -> None:
        """Add groups by the mean over the pairs of each, NaN where there is none, and the number of pairs."""
        is_defined = np.isfinite(means)
        self.total += float(means[is_defined].sum())
        self.groups += int(is_defined.sum())
        self.pairs += int(pairs.sum())

    def __add__(self, other: MeanAgreement) -> MeanAgreement:
        """Join the groups of both."""
        return MeanAgreement(self.total + other.total, self.groups + other.groups, self.pairs + other.pairs)

    @property
    def mean(self) -> float | None:
        """The setup stability; None where no group has a pair."""
        return self.total / self.groups if self.groups else None


@dataclass
class AgreementsByTarget:
    """Sums of the mean agreements of groups that belong to each of t targets.

    Attributes:
        total: Sum of the means of groups, `[t]`.
        groups: Groups that have a pair, `[t]`.
    """

    total: Floats
    groups: NDArray[np.int64]

    @classmethod
    def zeros(cls, targets: int) -> AgreementsByTarget:
        """Start to sum at zero."""
        return cls(np.zeros(targets), np.zeros(targets, dtype=np.int64))

    def add(self, means: Floats) -> None:
        """Add the means of `group_agreements` of each target's groups, `[t, groups]`."""
        is_defined = np.isfinite(means)
        self.total += np.where(is_defined, means, 0).sum(axis=1)
        self.groups += is_defined.sum(axis=1)

    def means(self) -> Floats:
        """Compute the mean over each target's groups, `[t]`, NaN where there are none."""
        return _quotients(self.total, self.groups)

    def means_without(self) -> Floats:
        """Compute the mean over the groups of all targets but each, `[t]`, NaN where there are none."""
        return _quotients(self.total.sum() - self.total, self.groups.sum() - self.groups)


def _quotients(total: Floats, groups: NDArray[Any]) -> Floats:
    return np.asarray(np.divide(total, groups, out=np.full(total.shape, np.nan), where=groups > 0))


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
    # The same share of all pools has an outcome as of the drawn ones. The correction vanishes long before 10^18.
    studied = pools.count * len(batches) / pools.batches
    population = min(pools.all, 10**18) * (defined.sum(axis=0) / studied)
    return agreements_across(vectors, defined, population)

"""Outcomes of experiments: win rates of metrics, and agreement as the mean Kendall tau-b over all pairs.

The tau-b of two outcomes over m metrics is the product of their agreement vectors. An agreement vector holds the signs
of the differences between all pairs of metrics, scaled to norm 1. The sum over all pairs of N experiments is then (|sum
u|^2 - N) / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats

Ties = Literal["split", "last"]


@dataclass
class Wins:
    """Counts of experiments that each metric wins; b batches, t targets, e measures, m metrics.

    Attributes:
        split: Experiments won, a tie counted in equal shares, `[b, t, e, m]`.
        last: Experiments won, a tie counted for the last of the metrics, `[b, t, e, m]`.
        tied: Experiments with several winners `[b, t, e]`.
        decided: Experiments in which the measure is defined for a metric `[b, t, e]`.
    """

    split: Floats
    last: Floats
    tied: NDArray[np.int64]
    decided: NDArray[np.int64]

    @classmethod
    def zeros(cls, *sizes: int) -> Wins:
        """Start to count at zero, `[b, t, e, m]`."""
        count = np.zeros(sizes[:-1], dtype=np.int64)
        return cls(np.zeros(sizes), np.zeros(sizes), count, count.copy())

    def add(self, batch: int, outcomes: Floats, tie_tolerance: float) -> None:
        """Count more experiments of a batch.

        Args:
            batch: Index of the batch.
            outcomes: Values that the metrics reached `[pools, t, e, m]`, NaN where undefined.
            tie_tolerance: A metric that is this close to the best one wins, too.
        """
        reached = np.where(np.isnan(outcomes), -np.inf, outcomes)
        best = reached.max(axis=-1, keepdims=True)
        won = (reached >= best - tie_tolerance) & np.isfinite(best)
        winners = won.sum(axis=-1)
        self.split[batch] += (won / np.maximum(winners, 1)[..., None]).sum(axis=0)
        winners_from_here_on = won[..., ::-1].cumsum(axis=-1)[..., ::-1]
        self.last[batch] += (won & (winners_from_here_on == 1)).sum(axis=0)
        self.tied[batch] += (winners > 1).sum(axis=0)
        self.decided[batch] += (winners > 0).sum(axis=0)

    def percent(self, ties: Ties) -> Floats:
        """Compute the win rates, a tie split among its winners or won by the last of them.

        Returns:
            Percentages `[m, e + 1]`, in the last column the mean over the measures; NaN where nothing is decided.
        """
        return _percent(getattr(self, ties).sum(axis=(0, 1)), self.decided.sum(axis=(0, 1)))

    def percent_without_each(self, ties: Ties, left_out: Literal["batch", "target"]) -> Floats:
        """Compute the win rates with each batch or target left out, `[b or t, m, e + 1]`; NaN for a single one."""
        across = 1 if left_out == "batch" else 0
        counts = getattr(self, ties).sum(axis=across), self.decided.sum(axis=across)
        rates = []
        for index in range(len(counts[1])):
            won, decided = (np.delete(count, index, axis=0).sum(axis=0) for count in counts)
            rates.append(_percent(won, decided))
        return np.stack(rates)

    def tied_percent(self) -> Floats:
        """Compute the share of experiments with several winners in per cent, `[e]`, NaN where nothing is decided."""
        return _quotients(100 * self.tied.sum(axis=(0, 1)), self.decided.sum(axis=(0, 1)))


def _percent(won: Floats, decided: NDArray[np.int64]) -> Floats:
    """Return experiments won `[e, m]` as percentages of those decided `[e]`, and their means, `[m, e + 1]`."""
    rates = _quotients(100 * won.T, np.broadcast_to(decided, won.T.shape))
    is_decided = decided > 0
    average = rates[:, is_decided].mean(axis=1) if is_decided.any() else rates[:, 0]
    return np.column_stack([rates, average])


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


def group_agreements(vectors: Floats, count: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    """Compute the mean agreement over all pairs within each group of experiments.

    Args:
        vectors: Sum of the agreement vectors of each group's experiments, `[..., vector]`.
        count: Experiments of each group with a defined outcome, `[...]`.

    Returns:
        Means `[...]`, NaN for a group without a pair, and the number of pairs `[...]`.
    """
    pairs = count * (count - 1) // 2
    return _quotients(((vectors**2).sum(axis=-1) - count) / 2, pairs), pairs


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
class Agreements:
    """Sums of the mean agreements within groups of experiments, which belong to k batches or targets.

    Attributes:
        total: Sum of the mean agreements of groups, `[k]`.
        groups: Groups that have a pair, `[k]`.
        pairs: Pairs of experiments with defined outcomes in these groups.
    """

    total: Floats
    groups: NDArray[np.int64]
    pairs: int = 0

    @classmethod
    def zeros(cls, count: int) -> Agreements:
        """Start to sum at zero."""
        return cls(np.zeros(count), np.zeros(count, dtype=np.int64))

    def add(self, means: Floats, pairs: NDArray[np.int64], which: int | slice = slice(None)) -> None:
        """Add groups.

        Args:
            means: Mean over the pairs of each group, NaN where there is none, `[k, groups]`.
            pairs: The number of pairs of each group.
            which: The batch or target of all these groups; `means` are `[groups]` then.
        """
        is_defined = np.isfinite(means)
        self.total[which] += np.where(is_defined, means, 0).sum(axis=-1)
        self.groups[which] += is_defined.sum(axis=-1)
        self.pairs += int(pairs.sum())

    @property
    def mean(self) -> float | None:
        """The unweighted mean over all groups; None where no group has a pair."""
        return float(self.total.sum() / self.groups.sum()) if self.groups.any() else None

    def means(self) -> Floats:
        """Compute the mean over the groups of each batch or target, `[k]`, NaN where there are none."""
        return _quotients(self.total, self.groups)

    def means_without(self) -> Floats:
        """Compute the mean over the groups of all others but each, `[k]`, NaN where there are none."""
        return _quotients(self.total.sum() - self.total, self.groups.sum() - self.groups)


def _quotients(total: NDArray[Any], groups: NDArray[Any]) -> Floats:
    """Divide, and return NaN where there are no groups."""
    return np.asarray(np.divide(total, groups, out=np.full(total.shape, np.nan), where=groups > 0))

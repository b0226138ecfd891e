"""Agreement of the outcomes of experiments: the mean Kendall tau-b over all pairs, without a loop over pairs.

The tau-b of two outcomes over m metrics is the product of their agreement vectors: the signs of the differences between
all pairs of metrics, scaled to norm 1. The sum over all pairs of N experiments is then (|sum u|^2 - N) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def agreement_vectors(outcomes: Values, tie_tolerance: float) -> tuple[Values, NDArray[np.bool_]]:
    """Turn outcomes into vectors whose inner products are Kendall's tau-b.

    Args:
        outcomes: Values that m metrics reached `[..., m]`, NaN where it is undefined.
        tie_tolerance: Differences up to this are ties.

    Returns:
        Vectors `[..., m (m - 1) / 2]` of norm 1, and where they are defined, `[...]`: tau-b has no value where a
        metric's is undefined or all are tied. Undefined vectors are 0.
    """
    first, second = np.triu_indices(outcomes.shape[-1], 1)
    difference = outcomes[..., first] - outcomes[..., second]
    signs = np.where(np.abs(difference) <= tie_tolerance, 0, np.sign(difference))
    untied = np.abs(signs).sum(axis=-1)
    # A sum with NaN in it is NaN, and not above 0.
    defined = untied > 0
    scaled = np.divide(signs, np.sqrt(untied)[..., None], out=np.zeros_like(signs), where=defined[..., None])
    return scaled, defined


def group_agreements(vectors: Values, count: NDArray[np.int64]) -> Values:
    """Compute the mean agreement over all pairs within each group of experiments.

    Args:
        vectors: Sum of the agreement vectors of each group's experiments, `[..., vector]`.
        count: Experiments of each group with a defined outcome, `[...]`.

    Returns:
        `[...]`, NaN for a group without a pair.
    """
    pairs = count * (count - 1) / 2
    total = ((vectors**2).sum(axis=-1) - count) / 2
    return np.asarray(np.divide(total, pairs, out=np.full(count.shape, np.nan), where=pairs > 0))


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

    def add(self, vectors: Values, count: NDArray[np.int64]) -> Values:
        """Add groups.

        Args:
            vectors: Sum of the agreement vectors of each group's experiments, `[..., vector]`.
            count: Experiments of each group with a defined outcome, `[...]`.

        Returns:
            The means of `group_agreements`.
        """
        means = group_agreements(vectors, count)
        known = np.isfinite(means)
        self.total += float(means[known].sum())
        self.groups += int(known.sum())
        self.pairs += int((count * (count - 1) // 2).sum())
        return means

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

    total: Values
    groups: NDArray[np.int64]

    @classmethod
    def none(cls, targets: int) -> AgreementsByTarget:
        """Start to sum at zero."""
        return cls(np.zeros(targets), np.zeros(targets, dtype=np.int64))

    def add(self, means: Values) -> None:
        """Add the means of `group_agreements` of each target's groups, `[t, groups]`."""
        known = np.isfinite(means)
        self.total += np.where(known, means, 0).sum(axis=1)
        self.groups += known.sum(axis=1)

    def means(self) -> Values:
        """Compute the mean over each target's groups, `[t]`, NaN where there are none."""
        return _quotients(self.total, self.groups)

    def means_without(self) -> Values:
        """Compute the mean over the groups of all targets but each, `[t]`, NaN where there are none."""
        return _quotients(self.total.sum() - self.total, self.groups.sum() - self.groups)


def _quotients(total: Values, groups: NDArray[np.int64]) -> Values:
    return np.asarray(np.divide(total, groups, out=np.full(total.shape, np.nan), where=groups > 0))

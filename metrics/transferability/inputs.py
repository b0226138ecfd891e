"""The inputs of transferability metrics: one source model on one target, and targets sampled from a data set."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy  # imports its parts on first use
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.metrics.transferability.baselines import SourceFacts
from headstart.metrics.transferability.feature_statistics import FeatureStatistics

ClassShare = Literal["varying", "half"]

LEAST_SHARE = 0.02
LEAST_CLASSES = 2


def sample_targets(classes: int, targets: int, share: ClassShare, seed: int) -> list[NDArray[np.int64]]:
    """Sample the classes of every target.

    Source: Andrea Agostinelli et al., "How stable are Transferability Metrics evaluations?", ECCV 2022, section 7. With
    `varying`, the number of classes is uniform over the whole numbers from 2 % of all (at least 2) to all. With `half`,
    it is always half of them, rounded down. The classes are then a subset of that size, each equally likely.

    Args:
        classes: Classes of the data set.
        targets: Number of targets.
        share: `varying` or `half`.
        seed: Seed of the sample; the first targets do not depend on how many there are.

    Returns:
        Classes of each target, ascending.

    Raises:
        ValueError: The data set has too few classes for two different targets.
    """
    if classes <= LEAST_CLASSES:
        needed = LEAST_CLASSES + 1
        raise ValueError(f"it has {classes} classes, and targets are subsets of them; {needed} or more are needed")
    generator = np.random.default_rng(seed)
    least = max(LEAST_CLASSES, math.ceil(LEAST_SHARE * classes))
    half = max(LEAST_CLASSES, classes // 2)

    pool = []
    for _ in range(targets):
        size = int(generator.integers(least, classes, endpoint=True)) if share == "varying" else half
        pool.append(np.sort(generator.choice(classes, size, replace=False)).astype(np.int64))
    return pool


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of the metrics of one source model on one target.

    Attributes:
        features: `[samples, features]`.
        labels: Integers from 0, `[samples]`.
        logits: Outputs of the source head, `[samples, source classes]`; None where there is no head.
        seed: Seed of the metrics that sample.
        facts: What is known of the source model, whatever the target.
    """

    features: NDArray[np.floating[Any]]
    labels: NDArray[np.int64]
    logits: NDArray[np.floating[Any]] | None = None
    seed: int = 0
    facts: SourceFacts = field(default_factory=SourceFacts)

    @cached_property
    def probabilities(self) -> Floats:
        """Probabilities of the source head's classes, `[samples, source classes]`; a ValueError without a head."""
        if self.logits is None:
            raise ValueError("the model has no source head, whose probabilities are needed")
        return np.asarray(scipy.special.softmax(np.asarray(self.logits, np.float64), axis=1))

    @cached_property
    def statistics(self) -> FeatureStatistics:
        """Statistics of the features, which all metrics share."""
        return FeatureStatistics(self.features, self.labels)

    @cached_property
    def order(self) -> Indices:
        """Index of every row of the statistics among these samples, `[samples]`."""
        return np.argsort(self.labels, kind="stable")

    def subset(self, kept: Flags) -> Inputs:
        """Return the inputs of some of the samples, by their mask `[samples]`."""
        logits = None if self.logits is None else self.logits[kept]
        return replace(self, features=self.features[kept], labels=self.labels[kept], logits=logits)

"""Pools of targets that are made of one large data set by sampling its classes."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

ClassShare = Literal["varying", "half"]

LEAST_SHARE = 0.02
LEAST_CLASSES = 2


def sample_targets(classes: int, targets: int, share: ClassShare, seed: int) -> list[NDArray[np.int64]]:
    """Sample the classes of every target.

    Source: Andrea Agostinelli et al., "How stable are Transferability Metrics evaluations?", ECCV 2022, section 7. With
    `varying`, the number of classes is uniform over the whole numbers from 2 % of all (2 at least) to all; with `half`
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

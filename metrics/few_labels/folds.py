"""Stratified folds and proportional orderings of few labels."""

import numpy as np

from headstart.metrics.arrays import Indices

# More folds hardly make training sets larger, but cost as much again.
MOST_FOLDS = 10
# Fold of a sample that is never left out.
KEPT = -1


def count_folds(labels: Indices) -> int:
    """Return the number of folds: as many as a class of median size has samples, from 2 to 10.

    With fewer samples per class than 10, each fold of equal classes therefore holds one sample of each class. Leaving
    out a single sample would unbalance the remaining classes, and the class mean of few samples would move.

    Args:
        labels: Class of each sample, from 0, `[samples]`.
    """
    sizes = np.bincount(labels)
    return int(np.clip(np.median(sizes[sizes > 0]), 2, MOST_FOLDS))


def stratified_folds(labels: Indices, folds: int, repeats: int, seed: int) -> Indices:
    """Split samples into folds, several times, each fold with its share of every class.

    Source: Ron Kohavi, "A Study of Cross-Validation and Bootstrap for Accuracy Estimation and Model Selection", IJCAI,
    1995, section 3. Samples are shuffled within each class. They go to the folds in turn, class after class. The sizes
    of two folds therefore differ by one at most, and so do their numbers of samples of one class.

    Args:
        labels: Class of each sample, from 0, `[samples]`.
        folds: Number of folds.
        repeats: Number of splits.
        seed: Seed of the splits; split r is the same whatever the number of splits.

    Returns:
        Fold of each sample in each split, `[repeats, samples]`. The only sample of a class has the fold -1 and is never
        left out: no method can learn a class without a sample.
    """
    sizes = np.bincount(labels)
    shared = np.flatnonzero(sizes[labels] > 1)
    assigned = np.full((repeats, len(labels)), KEPT, dtype=np.int64)
    for repeat in range(repeats):
        shuffled = np.random.default_rng((seed, repeat)).permutation(shared)
        ordered = shuffled[np.argsort(labels[shuffled], kind="stable")]
        assigned[repeat, ordered] = np.arange(len(ordered)) % folds
    return assigned


def proportional_orderings(labels: Indices, orderings: int, seed: int) -> Indices:
    """Return orders of samples in which every beginning has about the same share of each class.

    The samples of a class are shuffled. Sample k of n, from 0, ranks by (k + 1/2) / n; equal ranks are shuffled. Where
    classes are of one size, each block of as many samples as there are classes therefore holds every class once.

    Args:
        labels: Class of each sample, from 0, `[samples]`.
        orderings: Number of orders.
        seed: Seed of the orders; order k is the same whatever their number.

    Returns:
        Indices of the samples, `[orderings, samples]`.
    """
    sizes = np.bincount(labels)
    result = np.empty((orderings, len(labels)), dtype=np.int64)
    for ordering in range(orderings):
        shuffled = np.random.default_rng((seed, ordering, 1)).permutation(len(labels))
        by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
        firsts = np.cumsum(sizes) - sizes
        positions = np.arange(len(labels)) - firsts[labels[by_class]]
        ranks = np.empty(len(labels))
        ranks[by_class] = (positions + 0.5) / sizes[labels[by_class]]
        result[ordering] = shuffled[np.argsort(ranks[shuffled], kind="stable")]
    return result

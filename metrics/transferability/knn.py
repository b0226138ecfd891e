"""Accuracy of the nearest neighbours."""

import math

import numpy as np

from headstart.metrics.arrays import Array, check_integer
from headstart.metrics.transferability.feature_statistics import FeatureStatistics, statistics_of

# Both are from Caron et al., "Emerging Properties in Self-Supervised Vision Transformers", ICCV, 2021, and Wu et al.
NEIGHBOURS = 20
TEMPERATURE = 0.07
# Similarities in memory at the same time.
BLOCK = 2**22
# Smaller differences of similarities and votes are rounding errors.
SAME = 1e-12


def knn_accuracy(
    features: Array | FeatureStatistics, labels: Array | None = None, neighbours: int = NEIGHBOURS
) -> float:
    """Measure how well the nearest neighbours of a sample, itself left out, predict its label.

    The neighbours have the highest cosine similarity s of the features, which are not transformed. They vote for their
    classes with weight exp(s / 0.07). This is the usual protocol for features of self-supervised networks: Zhirong Wu
    et al., "Unsupervised Feature Learning via Non-Parametric Instance Discrimination", CVPR 2018, section 3.4. The
    cosine depends neither on the scale of the features nor on the length of a sample's, which is large for photos of
    high contrast. Euclidean distances depend on both. As a transferability metric: Moein Sorkhei et al., "k-NN as a
    Simple and Effective Estimator of Transferability", 2025; they may count neighbours differently.

    Samples as similar as the last neighbour are also neighbours, and classes with equal votes share the prediction. The
    score therefore depends neither on the order of the samples nor on that of the classes. Memory: one copy of the
    features, and some million similarities at a time.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.
        neighbours: How many vote, or all other samples where there are fewer.

    Returns:
        The accuracy, from 0 to 1. The only sample of a class is never predicted correctly.

    Raises:
        ValueError: The number of neighbours is less than 1, or the features or labels do not fit.
    """
    check_integer("neighbours", neighbours, 1)
    statistics = statistics_of(features, labels)
    samples = statistics.samples
    if samples == 1:
        return 0.0
    rows = statistics.centred + statistics.mean
    lengths = np.sqrt((rows**2).sum(1))[:, None]
    rows = rows / np.where(lengths > 0, lengths, np.ones_like(lengths))

    count, step, right = min(int(neighbours), samples - 1), max(1, BLOCK // samples), 0.0
    for start in range(0, samples, step):
        block = np.arange(start, min(start + step, samples))
        similarities = rows[start : start + step] @ rows.T
        similarities[block - start, block] = -math.inf
        nearest = np.partition(similarities, -count, axis=1)[:, [-count]] - SAME
        votes = np.where(similarities >= nearest, np.exp((similarities - 1) / TEMPERATURE), np.zeros_like(similarities))
        counts = statistics.class_sums(votes.T)
        winners = counts >= counts.max(0) * (1 - SAME)
        right += float((winners[statistics.labels[block], block - start] / winners.sum(0)).sum())

    return float(right / samples)

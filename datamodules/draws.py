"""What of a data set is fed and in what order, by the seed alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray


def draw_ordering(samples: int, ordering: int, seed: int) -> NDArray[np.int64]:
    """Draw one order of the training samples.

    Args:
        samples: Number of training samples.
        ordering: Which ordering, from 0; it is drawn by itself, whatever others are in use.
        seed: Seed of the comparison.

    Returns:
        A permutation, `[samples]`.
    """
    return np.random.default_rng((seed, ordering)).permutation(samples)


def draw_views(samples: int, ordering: int, seed: int, views: int) -> NDArray[np.int64]:
    """Draw which view of each training sample an ordering feeds.

    Args:
        samples: Number of training samples.
        ordering: Which ordering, from 0; its views are drawn by themselves, as its order is.
        seed: Seed of the comparison.
        views: Number of views of each sample.

    Returns:
        A view, from 0, for every place in the ordering, `[samples]`.
    """
    # The third number keeps this apart from the generators of the orderings, the validation part and the heads.
    return np.random.default_rng((seed, ordering, 3)).integers(views, size=samples)


def draw_epoch(samples: int, epoch: int, seed: int) -> NDArray[np.int64]:
    """Draw the order of the training samples in one epoch of plain training.

    Args:
        samples: Number of training samples.
        epoch: Which epoch, from 0; its order is drawn by itself, so that training may go on from any.
        seed: Seed of the training.

    Returns:
        A permutation, `[samples]`.
    """
    # The third number keeps this apart from the other generators.
    return np.random.default_rng((seed, epoch, 4)).permutation(samples)


def draw_fed(samples: int, orderings: Sequence[int], cut: slice, seed: int, views: int) -> NDArray[np.int64]:
    """Draw what several orderings feed.

    Args:
        samples: Number of training samples.
        orderings: Which orderings.
        cut: Which part of each is fed.
        seed: Seed of the comparison.
        views: Number of views of each sample, which lie one after the other as the samples do.

    Returns:
        The samples, and the places of the views that are fed of them, `[2, orderings, fed]`.
    """
    fed = np.empty((2, len(orderings), len(range(samples)[cut])), dtype=np.int64)
    for number, order, view in zip(orderings, *fed, strict=True):
        order[:] = draw_ordering(samples, number, seed)[cut]
        view[:] = order
        if views > 1:
            view += samples * draw_views(samples, number, seed, views)[cut]
    return fed


def draw_validation(
    labels: NDArray[np.int64], size: int, seed: int, without: Collection[int] = ()
) -> NDArray[np.int64]:
    """Draw a part of the validation photos that has its share of every class, and one photo of each at least.

    A part of a larger size holds every smaller one of the same seed. The shares are those of A. Sainte-Laguë, "La
    représentation proportionnelle et la méthode des moindres carrés", Annales scientifiques de l'École Normale
    Supérieure, 1910: place k of a class of n photos, from 0, ranks by n / (2 k + 1).

    Args:
        labels: Class of every validation photo, `[samples]`.
        size: How many to take, as many as there are classes or more.
        seed: Seed of the comparison.
        without: Places of photos that cannot be taken, in whose stead the next of their class are.

    Returns:
        Places in ascending order, `[size]`, fewer where so many cannot be taken.
    """
    # The third number keeps this apart from every ordering's generator.
    order = np.random.default_rng((seed, 0, 1)).permutation(len(labels))
    order = order[~np.isin(order, list(without))]
    ranks = np.empty(len(order))
    for label, count in enumerate(np.bincount(labels)):
        mine = labels[order] == label
        ranks[mine] = (2 * np.arange(mine.sum()) + 1) / count
        ranks[np.flatnonzero(mine)[:1]] = 0
    return np.sort(order[np.argsort(ranks, kind="stable")[:size]])


def draw_seed(ordering: int, seed: int) -> int:
    """Draw the seed of one ordering of fine-tuning by many epochs.

    Args:
        ordering: Which ordering, from 0; its seed is drawn by itself, whatever others are in use.
        seed: Seed of the run.
    """
    return int(np.random.default_rng((seed, ordering, 6)).integers(2**62))

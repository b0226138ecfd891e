"""Which samples are fed and in what order: seeded orderings, epochs and parts of the validation set."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headstart.output.errors import UserError

# Third numbers in the seeds of generators: these draws are independent of each other, of orderings and of heads.
VALIDATION, EPOCHS, REPETITIONS, BLOCKS = 1, 4, 6, 7

Order = Literal["shuffled", "balanced"]
# The order of streams that name none.
SHUFFLED: Order = "shuffled"


def sample_ordering(samples: int, ordering: int, seed: int) -> NDArray[np.int64]:
    """Return one order of the training samples.

    Args:
        samples: Number of training samples.
        ordering: Which ordering, from 0; it does not depend on which others are in use.
        seed: Seed of the comparison.

    Returns:
        A permutation, `[samples]`.
    """
    return np.random.default_rng((seed, ordering)).permutation(samples)


def balanced_ordering(labels: NDArray[np.int64], ordering: int, seed: int) -> NDArray[np.int64]:
    """Return one order of the training samples in which every block of C samples holds each of the C classes once.

    The samples of a class come in the order of `sample_ordering`. The classes of a block come in a random order. The
    first k blocks are therefore k samples of each class.

    Args:
        labels: Class of each training sample, from 0, `[samples]`. Every class has a sample.
        ordering: Which ordering, from 0; it does not depend on which others are in use.
        seed: Seed of the comparison.

    Returns:
        Indices of the samples, `[C x size of the smallest class]`: the ordering ends when a class runs out.
    """
    shuffled = sample_ordering(len(labels), ordering, seed)
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    sizes = np.bincount(labels)
    of_class = np.split(by_class, np.cumsum(sizes)[:-1])

    blocks = np.stack([samples[: sizes.min()] for samples in of_class], axis=1)
    return np.random.default_rng((seed, ordering, BLOCKS)).permuted(blocks, axis=1).ravel()


def sample_epoch(samples: int, epoch: int, seed: int) -> NDArray[np.int64]:
    """Return the order of the training samples in one epoch of plain training.

    Args:
        samples: Number of training samples.
        epoch: Which epoch, from 0; its order does not depend on earlier ones, so that training may continue from any.
        seed: Seed of the training.

    Returns:
        A permutation, `[samples]`.
    """
    return np.random.default_rng((seed, epoch, EPOCHS)).permutation(samples)


def ordered_indices(
    samples: int,
    orderings: Sequence[int],
    limit: int,
    seed: int,
    balanced: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return the training samples in the sequence in which several orderings feed them.

    Args:
        samples: Number of training samples.
        orderings: Which orderings.
        limit: Number of samples that each ordering feeds.
        seed: Seed of the comparison.
        balanced: Class of each training sample for balanced orderings, `[samples]`; None for shuffled ones.

    Returns:
        Indices of the samples, `[orderings, limit]`.
    """
    indices = np.empty((len(orderings), limit), dtype=np.int64)
    for ordering, row in zip(orderings, indices, strict=True):
        if balanced is None:
            row[:] = sample_ordering(samples, ordering, seed)[:limit]
        else:
            row[:] = balanced_ordering(balanced, ordering, seed)[:limit]
    return indices


def sample_validation(labels: NDArray[np.int64], size: int, seed: int) -> NDArray[np.int64]:
    """Sample a part of the validation photos, stratified by class, with at least one photo of each class.

    A larger part contains every smaller one of the same seed. Photo k, from 0, of a class of n photos has the quotient
    n / (2 k + 1). The photos with the highest quotients are taken. Source: A. Sainte-Laguë, "La représentation
    proportionnelle et la méthode des moindres carrés", Annales scientifiques de l'École Normale Supérieure, 1910.

    Args:
        labels: Class of every validation photo, `[samples]`.
        size: Size of the part, at least the number of classes.
        seed: Seed of the comparison.

    Returns:
        Indices in ascending order, `[size]`.
    """
    order = np.random.default_rng((seed, 0, VALIDATION)).permutation(len(labels))
    ranks = np.empty(len(order))
    for label, count in enumerate(np.bincount(labels)):
        of_class = labels[order] == label
        ranks[of_class] = (2 * np.arange(of_class.sum()) + 1) / count
        ranks[np.flatnonzero(of_class)[:1]] = 0
    return np.sort(order[np.argsort(ranks, kind="stable")[:size]])


def sample_selection(labels: NDArray[np.int64], contents: NDArray[Any], share: float, seed: int) -> NDArray[np.int64]:
    """Sample the training photos that are not trained on, but used to choose among several runs.

    Photos of equal content count as one photo: all or none of them are held out. The sample is stratified by class; see
    `sample_validation`.

    Args:
        labels: Class of every training photo, `[samples]`.
        contents: Values that are equal for photos of equal content, such as their digests, `[samples]`.
        share: Share of the photos, between 0 and 1.
        seed: Seed of the run.

    Returns:
        Indices in ascending order.

    Raises:
        UserError: No photo of some class would be selected, or none would be trained on.
    """
    _, distinct, content_of = np.unique(contents, return_index=True, return_inverse=True)
    distinct.sort()
    sampled = distinct[sample_validation(labels[distinct], round(share * len(distinct)), seed)]
    selected = np.isin(content_of, content_of[sampled])

    classes_lack_photos = any(np.setdiff1d(labels, labels[part]).size for part in (selected, ~selected))
    if classes_lack_photos:
        raise UserError(
            f"data.selection_share: {share} given, which selects {selected.sum()} of {len(labels)} training photos, "
            "but both the selected and the others need a photo of every class; choose another share, or give more "
            "photos"
        )
    return np.flatnonzero(selected)


def sample_seed(ordering: int, seed: int) -> int:
    """Return the seed of one ordering in fine-tuning of several epochs.

    Args:
        ordering: Which ordering, from 0; its seed does not depend on which others are in use.
        seed: Seed of the run.
    """
    return int(np.random.default_rng((seed, ordering, REPETITIONS)).integers(2**62))

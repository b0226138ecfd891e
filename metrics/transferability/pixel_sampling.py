"""Samples of pixels of dense features and label maps, so that metrics of features and labels apply to segmentation."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Array, Floats, Indices, as_array, check_integer


def sample_pixels(
    features: Array,
    labels: Array,
    per_image: int = 1000,
    ignore_label: int | None = 255,
    seed: int | np.random.Generator = 0,
    counts: NDArray[np.int64] | None = None,
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Sample pixels of every image with probability inverse to the frequency of their class in the data set.

    Source: Andrea Agostinelli et al., "How stable are Transferability Metrics evaluations?", ECCV 2022, section 5,
    after Andrea Agostinelli et al., "Transferability Metrics for Selecting Source Model Ensembles", CVPR 2022. They
    sample 1,000 pixels per image, "inversely proportionally to the frequency of their class labels in the target
    dataset".

    Pixels are sampled one after the other without replacement. Each has a probability proportional to its weight among
    the remaining ones, by the exponential keys of Pavlos S. Efraimidis and Paul G. Spirakis, "Weighted random sampling
    with a reservoir", Information Processing Letters, 2006. Classes are therefore equally frequent in expectation where
    all images hold all classes in like shares and none runs out of pixels.

    The papers do not state the resolution of the pixels. Here it is that of the features. A label map of another size
    is read at the centres of the features' pixels (nearest), so no feature vector is repeated.

    Args:
        features: Of the backbone's dense layer, `[images, features, h, w]`, an array or a tensor.
        labels: Integers from 0, `[images, H, W]`.
        per_image: Pixels per image; an image with fewer valid pixels contributes each of these once.
        ignore_label: Pixels with this label are never sampled; None where all are valid.
        seed: Seed of the sample, or a generator, which continues from batch to batch. Batches then have the same sample
            as all images together.
        counts: Pixels of every class in the data set, `[classes]`, as from `count_pixels`; by default those of
            `labels`.

    Returns:
        Features `[pixels, features]` and labels `[pixels]`, in the order of the images.

    Raises:
        ValueError: The shapes do not fit; labels are not integers from 0; an option is out of range; a class has no
            pixels in `counts`; or there is no valid pixel.
    """
    features, labels = as_array("features", features), as_array("labels", labels)
    if features.ndim != 4 or 0 in features.shape:
        raise ValueError(f"features must be [images, features, h, w], at least one of each, not {list(features.shape)}")
    check_integer("per_image", per_image, 1)
    if not isinstance(seed, np.random.Generator):
        check_integer("seed", seed, 0)

    images, _, *size = features.shape
    if labels.ndim != 3 or len(labels) != images or 0 in labels.shape:
        raise ValueError(f"labels must be [{images}, H, W], a map for every image, not {list(labels.shape)}")

    maps = _integers(labels)
    frequency = count_pixels([maps], ignore_label) if counts is None else np.asarray(counts)
    small = _read_at_centres(maps, size).reshape(images, -1)
    keys = _exponential_keys(small, frequency, ignore_label, np.random.default_rng(seed))
    image, pixel = _smallest(keys, per_image)
    if not len(image):
        raise ValueError(f"labels: every pixel has the ignored label {ignore_label}; at least one other is needed")

    return features[image, :, pixel // size[1], pixel % size[1]], small[image, pixel].astype(np.int64)


def count_pixels(label_maps: Iterable[Array], ignore_label: int | None = 255) -> NDArray[np.int64]:
    """Count the pixels of every class over a data set, `[highest label + 1]`.

    Args:
        label_maps: Integers from 0, maps or batches of maps of any sizes, read once.
        ignore_label: This label is not counted; None counts all.

    Raises:
        ValueError: The labels are not integers from 0.
    """
    total = np.zeros(0, dtype=np.int64)
    for label_map in label_maps:
        values = _valid(_integers(label_map).ravel(), ignore_label)
        counts = np.bincount(values.astype(np.int64), minlength=len(total))
        counts[: len(total)] += total
        total = counts
    return total


def _integers(labels: Array) -> NDArray[np.integer]:
    array = as_array("labels", labels)
    if array.dtype.kind not in "iu":
        raise ValueError(f"labels must be integers, not {array.dtype}")
    return array


def _valid(labels: NDArray[np.integer], ignore_label: int | None) -> NDArray[np.integer]:
    valid = labels if ignore_label is None else labels[labels != ignore_label]
    if len(valid) and (lowest := int(valid.min())) < 0:
        raise ValueError(f"labels must be 0 or more, not {lowest}; ignore_label is {ignore_label}")
    return valid


def _read_at_centres(maps: NDArray[np.integer], size: list[int]) -> NDArray[np.integer]:
    """Read label maps `[images, H, W]` at the centres of the pixels of maps `[images, h, w]`."""
    rows, columns = ((2 * np.arange(n) + 1) * whole // (2 * n) for n, whole in zip(size, maps.shape[1:], strict=True))
    return maps[:, rows[:, None], columns]


def _exponential_keys(
    labels: NDArray[np.integer], counts: NDArray[np.int64], ignore_label: int | None, generator: np.random.Generator
) -> Floats:
    """Sample keys, the smallest of which are the sample, infinite for ignored pixels, `[images, pixels]`."""
    # Ignored pixels have keys, too, so that the keys of other pixels do not depend on the ignored ones.
    keys = generator.standard_exponential(labels.shape)
    valid = np.ones(labels.shape, dtype=bool) if ignore_label is None else labels != ignore_label
    present = np.unique(_valid(labels.ravel(), ignore_label)).tolist()
    uncounted = [label for label in present if label >= len(counts) or counts[label] < 1]
    if uncounted:
        raise ValueError(
            f"counts: class {uncounted[0]} has pixels in labels, but none by counts; count the whole data set"
        )

    # A key of rate 1 / count is the standard one times the count.
    keys[valid] *= counts[labels[valid]]
    keys[~valid] = np.inf
    return keys


def _smallest(keys: Floats, per_image: int) -> tuple[Indices, Indices]:
    """Find the indices of the smallest finite keys of every image, in the order of the images and of their pixels."""
    count = min(per_image, keys.shape[1])
    pixels = np.sort(np.argpartition(keys, count - 1, axis=1)[:, :count], axis=1)
    finite = np.isfinite(np.take_along_axis(keys, pixels, axis=1))
    return np.repeat(np.arange(len(keys)), finite.sum(1)), pixels[finite]

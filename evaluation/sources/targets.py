"""Target data sets: labelled photos."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headstart.datamodules.photos.duplicates import count_once, quote
from headstart.datamodules.photos.folder_listing import count_kinds, report_left_out
from headstart.datamodules.photos.photo_source import Photos, PhotoSource, require_classes
from headstart.output.errors import prefix_errors

Split = Literal["train", "validation"]
# Above this, metrics are of a sample: 2,048 features of so many photos take 1.6 GB in float64.
MOST_PHOTOS = 100_000
# Names of the splits in messages and reports.
SPLITS: dict[Split, str] = {"train": "training", "validation": "validation"}


@dataclass(frozen=True)
class Target:
    """A target data set.

    Attributes:
        name: Its name in tables.
        dataset: Name of the data set.
        split: The split whose photos are used.
        photos: The photos; those that occur more than once in their class count once.
        fingerprint: Digest of the photos: their contents, names, labels and order.
        repeated: Names of the photos of equal content in one class.
        in_several_classes: Names of the photos of equal content in more than one class.
        available: Number of photos of which these are a sample; as many as these are, where they are all.
    """

    name: str
    dataset: str
    split: Split
    photos: Photos
    fingerprint: str
    repeated: Sequence[Sequence[str]] = ()
    in_several_classes: Sequence[Sequence[str]] = ()
    available: int = 0

    def remarks(self) -> list[str]:
        """Return remarks on a sample of the photos, and on those that occur more than once."""
        lines, more = [], sum(len(names) - 1 for names in self.repeated)
        if self.available > len(self.photos):
            lines.append(f"Scores are of a seeded sample, {len(self.photos):,} of {self.available:,} photos.")
        if more:
            lines.append(
                f"Photos that are there more than once in their class are counted once, which leaves out {more}: "
                f"{quote(self.repeated, ' = ')}."
            )
        if self.in_several_classes:
            lines.append(
                f"Warning: {len(self.in_several_classes)} photos are in more than one class, about all of which no "
                f"source can be right: {quote(self.in_several_classes, ' = ')}."
            )
        return lines

    def describe(self) -> dict[str, Any]:
        """Return the number of photos, and their classes and digest, as JSON values."""
        photos = {"photos": len(self.photos), "available": self.available, "classes": list(self.photos.classes)}
        left_out = count_kinds(self.photos.left_out)
        return {"dataset": self.dataset, **photos, "files_left_out": left_out, "fingerprint": self.fingerprint}


def read_target(name: str, source: PhotoSource, split: Split, cache: Path, option: str, seed: int = 0) -> Target:
    """List the photos of a target and digest them; those that occur more than once in their class count once.

    Of more than `MOST_PHOTOS`, a sample is scored, the same by every source.

    Args:
        name: Its name in tables.
        source: The source of photos.
        split: The split whose photos are used.
        cache: The cache folder, for downloads without a folder of their own.
        option: The option for the source, with which errors begin.
        seed: Seed of the sample.

    Raises:
        UserError: The photos cannot be found or read, or there are fewer than two classes of them.
    """
    with prefix_errors(option):
        source.prepare(cache)
        photos = source.train() if split == "train" else source.validation()
        if photos.maps is None:
            require_classes(photos, SPLITS[split])
        report_left_out(photos.left_out, option)
        once = count_once(photos, cache)
        sample = once.photos.subset(sample_photos(once.photos.labels, MOST_PHOTOS, seed))
        sampled = sample if len(sample) < len(once.photos) else once.photos
        fingerprint, available = sampled.fingerprint(), len(once.photos)
        return Target(name, source.name, split, sampled, fingerprint, once.repeated, once.in_several_classes, available)


def sample_photos(labels: NDArray[np.int64], most: int, seed: int) -> NDArray[np.int64]:
    """Sample photos, of every class its share and one at least, and return their indices in ascending order.

    Args:
        labels: Class of each photo, `[photos]`.
        most: How many photos are sampled, if every class can have one.
        seed: Seed of the sample.
    """
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    sizes = np.bincount(labels)
    position = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # The first of each class comes before all others.
    by_share = np.argsort(position / sizes[labels[order]], kind="stable")
    return np.sort(order[by_share[: max(most, np.count_nonzero(sizes))]])

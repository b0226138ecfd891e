"""Target data sets: labelled photos."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headstart.datamodules.photos.duplicates import count_once, quote
from headstart.datamodules.photos.photo_source import Photos, PhotoSource, require_classes
from headstart.output.errors import prefix_errors

Split = Literal["train", "validation"]
# What messages and reports call the photos of a split.
SPLITS: dict[Split, str] = {"train": "training", "validation": "validation"}


@dataclass(frozen=True)
class Target:
    """A target data set.

    Attributes:
        name: What the table calls it.
        dataset: What the source of photos calls it.
        split: Which of its splits is taken.
        photos: The photos; those that are there more than once in their class are counted once.
        fingerprint: Digest of the photos: their contents, names, labels and order.
        repeated: Names of the photos of equal content in one class.
        in_several_classes: Names of the photos of equal content in more than one class.
    """

    name: str
    dataset: str
    split: Split
    photos: Photos
    fingerprint: str
    repeated: Sequence[Sequence[str]] = ()
    in_several_classes: Sequence[Sequence[str]] = ()

    def remarks(self) -> list[str]:
        """Name the photos that are there more than once."""
        lines, more = [], sum(len(names) - 1 for names in self.repeated)
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
        """Say as JSON values what its photos are, and how many."""
        classes = list(self.photos.classes)
        described = {"dataset": self.dataset, "photos": len(self.photos), "classes": classes}
        return {**described, "fingerprint": self.fingerprint}


def read_target(name: str, source: PhotoSource, split: Split, cache: Path, option: str) -> Target:
    """List the photos of a target and digest them; those that are there more than once in their class count once.

    Args:
        name: What the table calls it.
        source: The source of photos.
        split: Which of its splits is taken.
        cache: The cache folder, which holds downloads that were given no folder of their own.
        option: The option that the source was given by, with which errors begin.

    Raises:
        UserError: The photos cannot be found or read, or there are fewer than two classes of them.
    """
    with prefix_errors(option):
        source.prepare(cache)
        photos = source.train() if split == "train" else source.validation()
        if photos.maps is None:
            require_classes(photos, SPLITS[split])
        found = count_once(photos, cache)
        return Target(
            name, source.name, split, found.photos, found.photos.fingerprint(), found.repeated, found.in_several_classes
        )

"""Target data sets: labelled photos."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headstart.datamodules.photos.duplicates import count_once, quote
from headstart.datamodules.photos.folder_listing import count_kinds, report_left_out
from headstart.datamodules.photos.photo_source import Photos, PhotoSource, require_classes
from headstart.output.errors import prefix_errors

Split = Literal["train", "validation"]
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
    """

    name: str
    dataset: str
    split: Split
    photos: Photos
    fingerprint: str
    repeated: Sequence[Sequence[str]] = ()
    in_several_classes: Sequence[Sequence[str]] = ()

    def remarks(self) -> list[str]:
        """Return remarks on the photos that occur more than once."""
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
        """Return the number of photos, and their classes and digest, as JSON values."""
        photos = {"photos": len(self.photos), "classes": list(self.photos.classes)}
        left_out = count_kinds(self.photos.left_out)
        return {"dataset": self.dataset, **photos, "files_left_out": left_out, "fingerprint": self.fingerprint}


def read_target(name: str, source: PhotoSource, split: Split, cache: Path, option: str) -> Target:
    """List the photos of a target and digest them; those that occur more than once in their class count once.

    Args:
        name: Its name in tables.
        source: The source of photos.
        split: The split whose photos are used.
        cache: The cache folder, for downloads without a folder of their own.
        option: The option for the source, with which errors begin.

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
        fingerprint = once.photos.fingerprint()
        return Target(name, source.name, split, once.photos, fingerprint, once.repeated, once.in_several_classes)

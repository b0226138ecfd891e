"""Photos that occur more than once, which would spoil a comparison."""

import hashlib
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.datamodules.photos.photo_source import Photos
from headstart.output.errors import UserError

# Digest of files without a byte: they are never photos, so that they are no duplicates either.
EMPTY = hashlib.sha256().hexdigest()
# Groups, and names of each, that a message lists.
QUOTED = 5


def find_duplicates(train: Photos, validation: Photos, without: Container[str] = ()) -> list[list[str]]:
    """Find photos of equal content that are in both splits, or in two classes.

    Validation on a training photo measures nothing, and no method can be right about two classes. A photo that comes
    twice in one class of one split does no harm.

    Args:
        train: Training photos.
        validation: Validation photos.
        without: Names of photos to leave out.

    Returns:
        The names of each such photo, with their splits.
    """
    once, repeated = set[str](), set[str]()
    for photos in (train, validation):
        for digest in photos.digests():
            if digest != EMPTY:
                (repeated if digest in once else once).add(digest)

    by_content: defaultdict[str, list[tuple[str, int, str]]] = defaultdict(list)
    for split, photos in (("training", train), ("validation", validation)):
        for name, label, digest in zip(photos.names, photos.labels, photos.digests(), strict=True):
            if digest in repeated and name not in without:
                by_content[digest].append((split, int(label), f"{name} ({split})"))
    return [
        [name for *_, name in group]
        for group in by_content.values()
        if len({split for split, *_ in group}) > 1 or len({label for _, label, _ in group}) > 1
    ]


@dataclass(frozen=True)
class CountedOnce:
    """Photos without those whose content an earlier one of their class has.

    Attributes:
        photos: The photos, in their order.
        kept: Their indices among all photos.
        repeated: Names of the photos of equal content in one class, of which the first stays.
        in_several_classes: Names of the photos of equal content in more than one class, which all stay.
    """

    photos: Photos
    kept: NDArray[np.int64]
    repeated: list[list[str]]
    in_several_classes: list[list[str]]


def count_once(photos: Photos, cache: Path | None = None, without: Container[int] = ()) -> CountedOnce:
    """Count photos of equal content in one class once.

    Args:
        photos: The photos.
        cache: The cache folder, which remembers digests.
        without: Indices of photos to leave out first, such as those that cannot be decoded.
    """
    by_content: defaultdict[str, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, (label, digest) in enumerate(zip(photos.labels.tolist(), photos.digests(cache), strict=True)):
        if index not in without:
            by_content[digest][label].append(index)

    groups = [group for by_class in by_content.values() for group in by_class.values()]
    repeated = [[photos.names[index] for index in group] for group in groups if len(group) > 1]
    several = [
        [photos.names[first] for [first, *_] in by_class.values()]
        for by_class in by_content.values()
        if len(by_class) > 1
    ]
    kept = np.array(sorted(group[0] for group in groups), np.int64)
    return CountedOnce(photos if len(kept) == len(photos) else photos.subset(kept), kept, repeated, several)


def require_none(duplicates: Sequence[Sequence[str]]) -> None:
    """Check that there are no duplicates; a UserError names the first of them."""
    if duplicates:
        raise UserError(
            f"data.photos: {len(duplicates)} photos are in both splits or in two classes: {quote(duplicates, ' = ')}; "
            "remove them, or keep them with data.on_duplicates=keep"
        )


def quote(groups: Sequence[Sequence[str]], sign: str) -> str:
    """Return the first names of the first groups as text, with a sign between the names of a group."""
    listed = "; ".join(sign.join(names[:QUOTED]) for names in groups[:QUOTED])
    return f"{listed} and {len(groups) - QUOTED} more" if len(groups) > QUOTED else listed

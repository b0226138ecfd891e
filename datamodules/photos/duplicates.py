"""Photos that occur more than once, which would spoil a comparison."""

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.datamodules.photos.photo_source import Photos
from headstart.output.errors import UserError

# Groups, and names of each, that a message lists.
QUOTED = 5


def find_duplicates(train: Photos, validation: Photos) -> list[list[str]]:
    """Find photos of equal content that are in both splits, or in two classes.

    Validation on a training photo measures nothing, and no method can be right about two classes. A photo that comes
    twice in one class of one split does no harm, and neither do equal files that cannot be decoded.

    Args:
        train: Training photos.
        validation: Validation photos.

    Returns:
        The names of each such photo, with their splits.
    """
    once, repeated = set[str](), set[str]()
    for photos in (train, validation):
        for digest in photos.digests():
            (repeated if digest in once else once).add(digest)

    splits = {"training": train, "validation": validation}
    by_content: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for split, photos in splits.items():
        for index, digest in enumerate(photos.digests()):
            if digest in repeated:
                by_content[digest].append((split, index))

    duplicates = []
    for group in by_content.values():
        places = {(split, int(splits[split].labels[index])) for split, index in group}
        if len(places) > 1 and _is_readable(splits[group[0][0]], group[0][1]):
            duplicates.append([f"{splits[split].names[index]} ({split})" for split, index in group])
    return duplicates


def _is_readable(photos: Photos, index: int) -> bool:
    """Return whether a photo can be decoded."""
    try:
        photos.read(index)
    except OSError:
        return False
    return True


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

"""Photos that occur more than once, which would spoil a comparison."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headstart.datamodules.photos.photo_source import Photos

# Groups, and names of each, that a message lists.
QUOTED = 5
# Columns of the four parts of a digest.
DIGEST = [f"digest_{part}" for part in range(4)]


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
    splits = {"training": train, "validation": validation}
    table = pd.concat([_table(photos).assign(split=split) for split, photos in splits.items()])
    duplicates = []
    for _, group in table[table.duplicated(DIGEST, keep=False)].groupby(DIGEST, sort=False):
        split, index = group["split"].iloc[0], int(group.index[0])
        if group.duplicated(["split", "label"]).sum() < len(group) - 1 and _is_readable(splits[split], index):
            duplicates.append([f"{splits[row.split].names[row.Index]} ({row.split})" for row in group.itertuples()])
    return duplicates


def _table(photos: Photos, cache: Path | None = None) -> pd.DataFrame:
    """Return digest and label of each photo."""
    # Four numbers of a digest take a fifth of the memory of its text. A name that is not UTF-8 cannot be in a table.
    numbers = np.ascontiguousarray(photos.packed_digests(cache)).view(np.uint64).reshape(-1, len(DIGEST))
    return pd.DataFrame(numbers, columns=DIGEST).assign(label=photos.labels)


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


def count_once(photos: Photos, cache: Path | None = None, without: Collection[int] = ()) -> CountedOnce:
    """Count photos of equal content in one class once.

    Args:
        photos: The photos.
        cache: The cache folder, which remembers digests.
        without: Indices of photos to leave out first, such as those that cannot be decoded.
    """
    table = _table(photos, cache).drop(index=list(without))
    content = [*DIGEST, "label"]
    once = table.drop_duplicates(content)
    repeated, several = _names_of_equal(photos, table, content), _names_of_equal(photos, once, DIGEST)
    kept = once.index.to_numpy()
    return CountedOnce(photos if len(kept) == len(photos) else photos.subset(kept), kept, repeated, several)


def _names_of_equal(photos: Photos, table: pd.DataFrame, columns: list[str]) -> list[list[str]]:
    """Return the names of photos that are equal in some columns of a table, group by group."""
    groups = table[table.duplicated(columns, keep=False)].groupby(columns, sort=False)
    return [[photos.names[index] for index in group.index] for _, group in groups]


def quote(groups: Sequence[Sequence[str]], sign: str) -> str:
    """Return the first names of the first groups as text, with a sign between the names of a group."""
    listed = "; ".join(sign.join(names[:QUOTED]) for names in groups[:QUOTED])
    return f"{listed} and {len(groups) - QUOTED} more" if len(groups) > QUOTED else listed

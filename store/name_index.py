"""Names of many rows in little memory, and a search for some of them among others."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Names = NDArray[np.bytes_]


def pack(names: Sequence[str]) -> Names:
    """Return names as one array of bytes, which takes half of the memory of a list of texts.

    Args:
        names: The names.

    Returns:
        Their bytes in UTF-8, `[names]`.
    """
    width = max(1, max((len(name.encode(errors="surrogateescape")) for name in names), default=1))
    encoded = (name.encode(errors="surrogateescape") for name in names)
    return np.fromiter(encoded, np.dtype(f"S{width}"), len(names))


def unpack(names: Names) -> list[str]:
    """Return packed names as texts."""
    return [name.decode(errors="surrogateescape") for name in names.tolist()]


class NameIndex:
    """Finds names among others.

    Args:
        parts: The others, in several arrays.
    """

    def __init__(self, parts: Sequence[Names]) -> None:
        names = np.concatenate(parts) if parts else np.empty(0, "S1")
        self._order = np.argsort(names, kind="stable")
        self._sorted = names[self._order]

    def find(self, names: Names) -> NDArray[np.int64]:
        """Return where names are, `[names]`: indices over all parts, the last where a name is twice, -1 if nowhere."""
        found = np.full(len(names), -1)
        if not len(self._sorted):
            return found
        # Sorted names are found ten times as fast as others, because they are near each other.
        order = np.argsort(names, kind="stable")
        last = np.searchsorted(self._sorted, names[order], side="right") - 1
        there = (last >= 0) & (self._sorted[last] == names[order])
        found[order[there]] = self._order[last[there]]
        return found


def first_indices(names: Names, among: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the first index of each name among those of a mask, ascending."""
    indices = np.flatnonzero(among)
    return np.sort(indices[np.unique(names[indices], return_index=True)[1]])

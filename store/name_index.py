"""Names of many rows in little memory, and a search for some of them among others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import overload

import numpy as np
from numpy.typing import NDArray

Names = NDArray[np.bytes_]
# Names that are made at once.
PART = 4096


class HexNames(Sequence[str]):
    """Digests of one length as hexadecimal names, each made when it is asked for.

    Args:
        digests: The digests, `[names, bytes]`.
    """

    def __init__(self, digests: NDArray[np.uint8]) -> None:
        self._digests = digests

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._digests)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> HexNames: ...
    def __getitem__(self, index: int | slice) -> str | HexNames:
        """Return one name, or a slice of them."""
        digests = self._digests[index]
        return HexNames(digests) if isinstance(index, slice) else digests.tobytes().hex()

    def __iter__(self) -> Iterator[str]:
        """Yield every name."""
        width = 2 * self._digests.shape[1]
        for first in range(0, len(self), PART):
            text = self._digests[first : first + PART].tobytes().hex()
            yield from (text[start : start + width] for start in range(0, len(text), width))

    def take(self, indices: NDArray[np.int64]) -> HexNames:
        """Return some of the names, in the order of their indices."""
        return HexNames(self._digests[indices])

    def packed(self) -> Names:
        """Return the names as one array, as `pack` does."""
        names = np.empty(len(self), f"S{2 * self._digests.shape[1]}")
        for first in range(0, len(self), PART):
            text = self._digests[first : first + PART].tobytes().hex().encode()
            names[first : first + PART] = np.frombuffer(text, names.dtype)
        return names


def pack(names: Sequence[str]) -> Names:
    """Return names as one array of bytes, which takes half of the memory of a list of texts.

    Args:
        names: The names.

    Returns:
        Their bytes in UTF-8, `[names]`.
    """
    if isinstance(names, HexNames):
        return names.packed()
    with suppress(UnicodeEncodeError):
        return np.array(list(names), np.bytes_)
    # Names that are not ASCII alone.
    width = max(1, max((len(name.encode(errors="surrogateescape")) for name in names), default=1))
    encoded = (name.encode(errors="surrogateescape") for name in names)
    return np.fromiter(encoded, np.dtype(f"S{width}"), len(names))


def take(names: Sequence[str], indices: NDArray[np.int64]) -> Sequence[str]:
    """Return some names, in the order of their indices."""
    return names.take(indices) if isinstance(names, HexNames) else [names[index] for index in indices.tolist()]


def unpack(names: Names) -> list[str]:
    """Return packed names as texts."""
    return [name.decode(errors="surrogateescape") for name in names.tolist()]


class NameIndex:
    """Finds names among others, by hashes of 64 bits and then by the names themselves.

    Args:
        parts: The others, in several arrays.
    """

    def __init__(self, parts: Sequence[Names]) -> None:
        self._parts = [part for part in parts if len(part)]
        self._ends = np.cumsum([len(part) for part in self._parts], dtype=np.int64)
        hashes = np.concatenate([np.empty(0, np.uint64), *map(_hash, self._parts)])
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]

    def find(self, names: Names) -> NDArray[np.int64]:
        """Return where names are, `[names]`: indices over all parts, the last where a name is twice, -1 if nowhere."""
        found = np.full(len(names), -1)
        if not len(self._sorted):
            return found
        # Sorted hashes are found several times as fast as others, because they are near each other.
        hashes = _hash(names)
        order = np.argsort(hashes, kind="stable")
        last = np.searchsorted(self._sorted, hashes[order], side="right") - 1
        there = (last >= 0) & (self._sorted[last] == hashes[order])
        found[order[there]] = self._order[last[there]]

        for first in range(0, len(names), PART):
            part = slice(first, first + PART)
            for index in np.flatnonzero((found[part] >= 0) & (self._names(found[part]) != names[part])):
                # Another name has the same hash.
                found[first + index] = self._find_slowly(names[first + index])
        return found

    def _names(self, found: NDArray[np.int64]) -> Names:
        """Return the names at indices over all parts; any where there is none."""
        owners = np.searchsorted(self._ends, found, side="right")
        names = np.empty(len(found), max(part.dtype for part in self._parts))
        for owner in np.unique(owners[found >= 0]):
            mine = (owners == owner) & (found >= 0)
            names[mine] = self._parts[owner][found[mine] - (self._ends[owner] - len(self._parts[owner]))]
        return names

    def _find_slowly(self, name: np.bytes_) -> int:
        places = np.concatenate([part == name for part in self._parts])
        return int(np.flatnonzero(places)[-1]) if places.any() else -1


def _hash(names: Names) -> NDArray[np.uint64]:
    """Return hashes of names, the same whatever the length of the array's items: a sum of words times odd numbers."""
    words = -(-names.dtype.itemsize // 8)
    values = np.ascontiguousarray(names, f"S{8 * words}").view(np.uint64).reshape(len(names), words)
    hashes = np.zeros(len(names), np.uint64)
    for word, factor in enumerate(np.random.default_rng(0).integers(2**64, size=words, dtype=np.uint64) | np.uint64(1)):
        hashes += values[:, word] * factor
    return hashes


def first_indices(names: Names, among: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the first index of each name among those of a mask, ascending; names of one hash count as one."""
    indices = np.flatnonzero(among)
    return np.sort(indices[np.unique(_hash(names[indices]), return_index=True)[1]])

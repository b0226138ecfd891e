"""Names of many pictures in little memory: they are made when they are asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

END = b"\0"
# Names that are made at once.
PART = 4096


class LazyNames(Sequence[str]):
    """Names that are made when they are asked for, without an object for each."""

    @abstractmethod
    def name(self, index: int) -> str:
        """Return one name, by its index from 0."""

    @abstractmethod
    def take(self, indices: NDArray[np.int64]) -> LazyNames:
        """Return some of the names, in the order of their indices."""

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> LazyNames: ...
    def __getitem__(self, index: int | slice) -> str | LazyNames:
        """Return one name, or a slice of them."""
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        return self.name(range(len(self))[index])

    def __iter__(self) -> Iterator[str]:
        """Yield every name."""
        return map(self.name, range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Whether another sequence has the same names."""
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(str.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]


class PackedNames(LazyNames):
    """Names in one array of bytes.

    Args:
        text: All names, each with a NUL behind it.
        starts: Where each name begins.
        ends: Where each name ends.
    """

    def __init__(self, text: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        self.text = text
        self.starts = starts
        self.ends = ends

    @classmethod
    def split(cls, text: NDArray[np.uint8]) -> PackedNames:
        """Return the names in a text with a NUL behind each of them."""
        ends = np.flatnonzero(text == END[0])
        return cls(text, np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends, ends)

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self.ends)

    def name(self, index: int) -> str:
        """Return one name; bytes that are no UTF-8 become surrogates, as in names of files."""
        return self.text[self.starts[index] : self.ends[index]].tobytes().decode(errors="surrogateescape")

    def take(self, indices: NDArray[np.int64]) -> PackedNames:
        """Return some of the names, which share the text."""
        return PackedNames(self.text, self.starts[indices], self.ends[indices])

    def __iter__(self) -> Iterator[str]:
        """Yield every name."""
        for first in range(0, len(self), PART):
            some = self.take(np.arange(first, min(first + PART, len(self))))
            yield from some._joined().decode(errors="surrogateescape").split("\0")[:-1]

    def _joined(self) -> bytes:
        """Return the names, each with a NUL behind it."""
        if len(self) and (self.starts[1:] == self.ends[:-1] + 1).all():
            return self.text[self.starts[0] : self.ends[-1] + 1].tobytes()
        pieces = [self.text[start : end + 1].tobytes() for start, end in zip(self.starts, self.ends, strict=True)]
        return b"".join(pieces)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the text of these names alone."""
        return PackedNames.split, (np.frombuffer(self._joined(), np.uint8),)


class NumberedNames(LazyNames):
    """Names such as `train/17`: a title and a number.

    Args:
        titles: The titles.
        which: Index of each name's title.
        numbers: Number of each name.
    """

    def __init__(self, titles: Sequence[str], which: NDArray[np.int32], numbers: NDArray[np.int64]) -> None:
        self.titles = titles
        self.which = which
        self.numbers = numbers

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self.numbers)

    def name(self, index: int) -> str:
        """Return one name."""
        return f"{self.titles[self.which[index]]}/{self.numbers[index]}"

    def take(self, indices: NDArray[np.int64]) -> NumberedNames:
        """Return some of the names."""
        return NumberedNames(self.titles, self.which[indices], self.numbers[indices])


def number(sizes: Mapping[str, int]) -> NumberedNames:
    """Return the names of pictures that are numbered from 0 under each title.

    Args:
        sizes: Number of pictures by title.
    """
    which = np.repeat(np.arange(len(sizes), dtype=np.int32), [*sizes.values()])
    numbers = np.concatenate([np.arange(size) for size in sizes.values()])
    return NumberedNames([*sizes], which, numbers)

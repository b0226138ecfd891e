"""Names of many pictures in little memory: they are made when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray


class NumberedNames(Sequence[str]):
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

    @classmethod
    def of_sizes(cls, sizes: Mapping[str, int]) -> NumberedNames:
        """Return the names of pictures that are numbered from 0 under each title.

        Args:
            sizes: Number of pictures by title.
        """
        which = np.repeat(np.arange(len(sizes), dtype=np.int32), [*sizes.values()])
        numbers = np.concatenate([np.arange(size) for size in sizes.values()])
        return cls([*sizes], which, numbers)

    def take(self, indices: NDArray[np.int64]) -> NumberedNames:
        """Return some of the names, in the order of their indices."""
        return NumberedNames(self.titles, self.which[indices], self.numbers[indices])

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self.numbers)

    def __iter__(self) -> Iterator[str]:
        """Yield every name."""
        return (f"{self.titles[which]}/{number}" for which, number in zip(self.which, self.numbers, strict=True))

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> NumberedNames: ...
    def __getitem__(self, index: int | slice) -> str | NumberedNames:
        """Return one name, or a slice of them."""
        if isinstance(index, slice):
            return NumberedNames(self.titles, self.which[index], self.numbers[index])
        return f"{self.titles[self.which[index]]}/{self.numbers[index]}"

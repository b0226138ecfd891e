"""Rows of several parts in one order, read from the disk when they are indexed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class GatheredRows:
    """Rows that lie in several arrays, as one array that is read row by row.

    Args:
        parts: Arrays of one type, and of one shape but for the number of rows; memory-mapped.
        owners: Which array holds each row, `[rows]`.
        positions: Where in that array, `[rows]`.

    Attributes:
        on_disk: True, by which metrics know that rows are not to be read all at once.
        shape: `[rows, ...]`.
        ndim: Number of axes.
        dtype: Type of the values.
    """

    on_disk = True

    def __init__(
        self, parts: Sequence[NDArray[Any]], owners: NDArray[np.integer[Any]], positions: NDArray[np.integer[Any]]
    ) -> None:
        self._parts, self._owners, self._positions = parts, owners, positions
        self.shape = len(owners), *parts[0].shape[1:]
        self.ndim = len(self.shape)
        self.dtype = parts[0].dtype

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._owners)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return len(self) * self._parts[0].dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))

    def __getitem__(self, rows: Any) -> Any:  # noqa: ANN401 - its kind depends on the index
        """Read some of the rows, or choose columns of all.

        Args:
            rows: A slice, indices or a mask; or `[:, columns]`.

        Returns:
            A copy of the rows, `[chosen, ...]`; of columns, GatheredRows, which are read when they are indexed.
        """
        if isinstance(rows, tuple):
            return GatheredRows([part[rows] for part in self._parts], self._owners, self._positions)
        owners, positions = self._owners[rows], self._positions[rows]
        gathered = np.empty((len(owners), *self.shape[1:]), self.dtype)
        for owner in np.unique(owners):
            mine = owners == owner
            gathered[mine] = self._parts[owner][positions[mine]]
        return gathered

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: ANN401 - NumPy's protocol
        """Read all rows into memory, for NumPy's functions."""
        return np.asarray(self[:], dtype)

"""Embeddings as CKA reads them: checked, and centred in float64 block by block wherever they lie."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Array, in_place, namespace
from headstart.metrics.similarity.gram_products import check_rows

if TYPE_CHECKING:
    from torch import Tensor

Embedding: TypeAlias = "NDArray[Any] | Tensor"

CHUNK_VALUES = 2**16


class Workspace:
    """Memory that is used again and again, since fresh pages cost as much time as filling them."""

    def __init__(self) -> None:
        self._values: Array = None

    def take(self, like: Array, *shape: int) -> Array:
        """Give a float64 matrix with arbitrary content that lies where an array does; what was taken before is lost."""
        size = math.prod(shape)
        if self._values is None or len(self._values) < size:
            self._values = None  # freed first, so that old and new are not held at the same time
            self._values = namespace(like).empty(size, dtype=like.dtype, device=like.device)
        return self._values[:size].reshape(shape)


@dataclass(frozen=True)
class CentredEmbedding:
    """An embedding that stays where it lies (memory, memory-mapped file, accelerator), and its mean row.

    Attributes:
        name: What it is called in messages.
        values: Real array, or tensor on an accelerator, `[n, d]`.
        mean: Mean row in float64, `[d]`.
    """

    name: str
    values: Array
    mean: Array

    @classmethod
    def read(cls, x: Embedding, name: str, debiased: bool) -> CentredEmbedding:
        """Check an embedding `[n, d]` and compute its mean row, without copying it.

        Raises:
            ValueError: Naming it, if it is not a matrix of finite real numbers with enough rows for the HSIC.
        """
        values = in_place(name, x)
        if values.ndim != 2 or values.shape[1] == 0:
            raise ValueError(f"{name}: shape {list(values.shape)}, but a matrix [stimuli, dim] is needed")
        check_rows(len(values), name, debiased)
        with np.errstate(invalid="ignore", over="ignore"):
            mean = _mean(values)
            if not math.isfinite(float(mean.sum())):
                raise ValueError(f"{name}: contains NaN or infinity, or values whose sum exceeds float64")
        return cls(name, values, mean)

    @property
    def width(self) -> int:
        """The number of columns, d."""
        return int(self.values.shape[1])

    @property
    def place(self) -> tuple[int, str]:
        """What embeddings must have in common: the number of rows and the device."""
        return len(self.values), str(self.mean.device)

    def centred(self, rows: slice | NDArray[np.intp], workspace: Workspace) -> Array:
        """Centre some rows at the mean of all, in float64 `[rows, d]`, and put them into the workspace."""
        values = self.values[rows]
        centred = workspace.take(self.mean, *values.shape)
        centred[:] = values
        centred -= self.mean
        return centred

    def check_alike(self, place: tuple[int, str], name: str) -> None:
        """Refuse by a ValueError that this embedding differs in place from another, which has a name."""
        for ours, others, unit in zip(self.place, place, ("rows", "as device"), strict=True):
            if ours != others:
                raise ValueError(
                    f"{self.name}: {ours} {unit}, but {name} has {others}; both need the same stimuli and device"
                )


def read_embeddings(embeddings: Iterable[Embedding], debiased: bool = False) -> list[CentredEmbedding]:
    """Check embeddings that are compared with each other, `[n, d_i]` each, and name them as `embeddings[3]`.

    Raises:
        ValueError: As `CentredEmbedding.read`; or if there is none, or the numbers of rows or the devices differ.
    """
    read = [CentredEmbedding.read(x, f"embeddings[{i}]", debiased) for i, x in enumerate(embeddings)]
    if not read:
        raise ValueError("embeddings: none given, at least 1 is needed")
    for x in read:
        x.check_alike(read[0].place, read[0].name)
    return read


def _mean(values: Array) -> Array:
    """Average the rows relative to the first, so that equal rows have exactly that row as their mean."""
    xp = namespace(values)
    origin = xp.asarray(values[0], dtype=xp.float64, copy=True)
    step = max(1, CHUNK_VALUES // values.shape[1])
    total: Array = 0.0
    for start in range(0, len(values), step):
        chunk = xp.asarray(values[start : start + step], dtype=xp.float64, copy=True)
        chunk -= origin
        total += chunk.sum(0)
    return origin + total / len(values)

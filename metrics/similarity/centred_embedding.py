"""Embeddings that are checked, and read as centred rows or rows of length 1 in float64 without copying them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats, Indices, in_place
from headstart.metrics.similarity.gram_products import check_rows

if TYPE_CHECKING:
    from torch import Tensor

Embedding: TypeAlias = "NDArray[Any] | Tensor"

Compared = TypeVar("Compared")

# Values of the rows that are read at a time.
CHUNK_VALUES = 2**16
# Rows shorter than this part of their largest value times the root of their width consist of rounding errors.
LOST = 1e-14


@dataclass(frozen=True)
class CentredEmbedding:
    """An embedding that is not copied (from memory, a memory-mapped file), and its mean row.

    Attributes:
        name: Its name in messages.
        values: Real array, `[n, d]`.
        mean: Mean row in float64, `[d]`.
    """

    name: str
    values: NDArray[Any]
    mean: Floats

    @classmethod
    def read(cls, x: Embedding, name: str, debiased: bool) -> CentredEmbedding:
        """Check an embedding `[n, d]` and compute its mean row, without copying it unless it is on an accelerator.

        Raises:
            ValueError: The embedding, which is named, is not a matrix of finite real numbers with enough rows for the
                HSIC; or all its rows are equal up to rounding.
        """
        values = in_place(name, x)
        if values.ndim != 2 or values.shape[1] == 0:
            raise ValueError(f"{name}: shape {list(values.shape)}, but a matrix [stimuli, dim] is needed")
        check_rows(len(values), name, debiased)
        with np.errstate(invalid="ignore", over="ignore"):
            mean, spread = _mean_and_spread(values)
            if not math.isfinite(float(mean.sum())):
                raise ValueError(f"{name}: contains NaN or infinity, or values whose sum exceeds float64")
            # Neighbours of a type of precision e lie at most e |v| apart, so that a flip of the last bit cannot move a
            # value v by more, 1.2e-7 |v| for float32.
            if (spread <= precision(values) * abs(mean)).all():
                raise ValueError(
                    f"{name}: a similarity is undefined where all rows are equal, up to rounding to {values.dtype}"
                )
        return cls(name, values, mean)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.values)

    @property
    def width(self) -> int:
        """The number of columns, d."""
        return int(self.values.shape[1])

    def centred(self, rows: slice | Indices = slice(None)) -> Floats:
        """Return some rows, centred at the mean of all, in float64 `[rows, d]`."""
        values = self.values[rows].astype(np.float64)
        values -= self.mean
        return values

    def chunks(self) -> Iterator[Floats]:
        """Yield all centred rows in float64, some at a time."""
        step = max(1, CHUNK_VALUES // self.width)
        for start in range(0, self.n, step):
            yield self.centred(slice(start, start + step))

    def squared_lengths(self) -> Floats:
        """Compute the squared lengths of the centred rows, the diagonal of the Gram matrix, `[n]`."""
        return np.concatenate([(chunk * chunk).sum(1) for chunk in self.chunks()])

    def unit_norm(self) -> tuple[Floats, float]:
        """Centre the embedding and scale it to Frobenius norm 1.

        Returns:
            In float64 `[n, d]`; and the largest singular value that rounding alone causes. With the precision e of the
            original values, an error of `e max|X|` in each causes singular values of about `e max|X| (sqrt(n) +
            sqrt(d))`.

        Raises:
            ValueError: It contains NaN or infinity.
        """
        values = self.centred()
        largest = float(abs(values).max())
        # First by the largest value, so that squares neither vanish nor exceed float64.
        values /= largest
        norm = float((values * values).sum()) ** 0.5
        values /= norm
        if not np.isfinite(float(values.sum())):
            raise ValueError(f"{self.name}: contains NaN or infinity")
        rows = self.values[:]
        highest = max(abs(float(rows.max())), abs(float(rows.min())))
        n, d = values.shape
        return values, precision(self.values) * highest / largest / norm * float(np.sqrt(n) + np.sqrt(d))

    def narrow(self) -> tuple[Floats, float]:
        """Return the result of `unit_norm`, rotated into at most n columns, `[n, min(n, d)]`.

        With `X^T = Q R`, the transposed triangle `R^T` has the Gram matrix of X.
        """
        values, rounding = self.unit_norm()
        if len(values) >= self.width:
            return values, rounding
        triangle: Any = np.linalg.qr(values.T, mode="r")
        return triangle.T, rounding

    def check_alike(self, n: int, name: str) -> None:
        """Raise a ValueError if this embedding has another number of rows than another, which has a name."""
        if self.n != n:
            raise ValueError(f"{self.name}: {self.n} rows, but {name} has {n}; both need the same stimuli")


def read_embeddings(embeddings: Iterable[Embedding], debiased: bool = False) -> list[CentredEmbedding]:
    """Check embeddings that are compared with each other, `[n, d_i]` each, and name them as `embeddings[3]`.

    Raises:
        ValueError: As `CentredEmbedding.read`; or if there is none, or the numbers of rows differ.
    """
    read = [CentredEmbedding.read(x, f"embeddings[{i}]", debiased) for i, x in enumerate(embeddings)]
    if not read:
        raise ValueError("embeddings: none given, at least 1 is needed")
    for x in read:
        x.check_alike(read[0].n, read[0].name)
    return read


def precision(values: NDArray[Any]) -> float:
    """Return the relative precision of values as they come; that of float64 for integers."""
    return float(np.finfo(values.dtype if values.dtype.kind == "f" else np.float64).eps)


def _mean_and_spread(values: NDArray[Any]) -> tuple[Floats, Floats]:
    """Compute the mean of each column, and how far from the first row its values lie; both are exact of equal rows."""
    origin = values[:1].astype(np.float64)[0]
    step = max(1, CHUNK_VALUES // values.shape[1])
    total, spread = np.zeros_like(origin), np.zeros_like(origin)
    for start in range(0, len(values), step):
        chunk = values[start : start + step].astype(np.float64)
        chunk -= origin
        total += chunk.sum(0)
        spread = np.maximum(spread, abs(chunk).max(0))
    return origin + total / len(values), spread


def matrix_of_pairs(compared: Sequence[Compared], similarity: Callable[[Compared, Compared], float]) -> Floats:
    """Compute the similarity of every pair of m representations.

    Args:
        compared: The representations, m of them.
        similarity: Returns the similarity of two: at most 1, up to rounding, and 1 where both are the same.

    Returns:
        Symmetric matrix `[m, m]` with ones on its diagonal, at most 1.
    """
    matrix = np.eye(len(compared))
    for i, j in combinations(range(len(compared)), 2):
        matrix[i, j] = matrix[j, i] = min(similarity(compared[i], compared[j]), 1.0)
    return matrix


@dataclass(frozen=True)
class UnitRows(CentredEmbedding):
    """An embedding that is read as rows of length 1 instead of rows centred at their mean.

    Attributes:
        correlated: Whether the mean of each row's own values is subtracted first. Products of rows are then Pearson
            correlations instead of cosines.
        measure: The measure that is undefined where a row has no direction, for messages.
    """

    correlated: bool
    measure: str

    def centred(self, rows: slice | Indices = slice(None)) -> Floats:
        """Return some rows, scaled to length 1, in float64 `[rows, d]`.

        Raises:
            ValueError: A row is 0, or constant where rows are correlated, or its squares exceed float64.
        """
        values = self.values[rows].astype(np.float64)
        largest = abs(values).max(1)
        if self.correlated:
            values -= values.mean(1)[:, None]
        with np.errstate(over="ignore"):
            lengths = np.sqrt((values * values).sum(1))
        if not np.isfinite(lengths).all():
            raise ValueError(f"{self.name}: contains NaN or infinity, or values whose squares exceed float64")
        if (degenerate := np.flatnonzero(lengths <= LOST * self.width**0.5 * largest)).size:
            state = "equal in all columns" if self.correlated else "0"
            row = np.arange(self.n)[rows][degenerate[0]]
            raise ValueError(f"{self.name}: {self.measure} is undefined where a row is {state}, as row {row} is")

        values /= lengths[:, None]
        return values

    def sum(self) -> Floats:
        """Sum the rows of length 1, `[d]`."""
        total = np.zeros(self.width)
        for chunk in self.chunks():
            total += chunk.sum(0)
        return total


def read_unit_rows(embeddings: Iterable[Embedding], measure: str, correlated: bool) -> list[UnitRows]:
    """Check embeddings `[n, d_i]` as `read_embeddings` does, and read them as `UnitRows`."""
    return [UnitRows(x.name, x.values, x.mean, correlated, measure) for x in read_embeddings(embeddings)]

"""Embeddings as linear CKA reads them: checked, and centred in float64 block by block wherever they lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrics.similarity.gram_products import check_rows

if TYPE_CHECKING:
    from torch import Tensor

Embedding: TypeAlias = "NDArray[Any] | Tensor"
# Either of the two, told apart where they differ: a tensor on an accelerator has most of the operators of an array.
Matrix: TypeAlias = Any

CHUNK_VALUES = 2**16


class Workspace:
    """Memory that is used again and again, since fresh pages cost as much time as filling them."""

    def __init__(self) -> None:
        self._values: Matrix = None

    def take(self, like: Matrix, *shape: int) -> Matrix:
        """Give a float64 matrix with arbitrary content; what was taken before is overwritten.

        Args:
            like: A float64 array or tensor that lies where the matrix is to lie.
            shape: Shape of the matrix.

        Returns:
            Array or tensor of the shape.
        """
        size = math.prod(shape)
        if self._values is None or len(self._values) < size:
            self._values = None  # freed first, so that old and new are not held at the same time
            self._values = np.empty(size) if isinstance(like, np.ndarray) else like.new_empty(size)
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
    values: Matrix
    mean: Matrix

    @classmethod
    def read(cls, x: Embedding, name: str, debiased: bool) -> CentredEmbedding:
        """Check an embedding and compute its mean row, without copying it.

        Args:
            x: The embedding, `[n, d]`.
            name: What it is called in messages.
            debiased: Whether it is to be used for the debiased HSIC.

        Returns:
            The embedding.

        Raises:
            ValueError: If it is not a matrix of finite real numbers with enough rows.
        """
        values = _checked(x, name, debiased)
        with np.errstate(invalid="ignore", over="ignore"):
            mean = _mean(values)
            if not math.isfinite(float(mean.sum())):
                msg = f"{name}: contains NaN or infinity, or values whose sum exceeds float64"
                raise ValueError(msg)
        return cls(name, values, mean)

    @property
    def width(self) -> int:
        """The number of columns, d."""
        return int(self.values.shape[1])

    @property
    def place(self) -> tuple[int, str]:
        """What embeddings must have in common: the number of rows and the device."""
        return len(self.values), str(self.mean.device)

    def centred(self, rows: slice, workspace: Workspace) -> Matrix:
        """Centre some rows at the mean of all.

        Args:
            rows: Which rows.
            workspace: Where they are put.

        Returns:
            The rows in float64, `[rows, d]`.
        """
        values = self.values[rows]
        centred = workspace.take(self.mean, *values.shape)
        centred[:] = values
        centred -= self.mean
        return centred

    def check_alike(self, place: tuple[int, str], name: str) -> None:
        """Refuse this embedding where it does not go with another.

        Args:
            place: `place` of the other.
            name: Name of the other.

        Raises:
            ValueError: If the number of rows or the device differs.
        """
        for ours, others, unit in zip(self.place, place, ("rows", "as device"), strict=True):
            if ours != others:
                msg = f"{self.name}: {ours} {unit}, but {name} has {others}; both need the same stimuli and device"
                raise ValueError(msg)


def as_numpy(values: Matrix) -> NDArray[np.float64]:
    """Bring a small result to numpy.

    Args:
        values: Array or tensor, float64.

    Returns:
        The array, or a copy of the tensor.
    """
    return values if isinstance(values, np.ndarray) else np.asarray(values.cpu())


def _checked(x: Embedding, name: str, debiased: bool) -> Matrix:
    values = _in_place(x, name)
    if "complex" in str(values.dtype) or (isinstance(values, np.ndarray) and values.dtype.kind not in "fiub"):
        msg = f"{name}: values of type {values.dtype}, but real numbers are needed"
        raise ValueError(msg)
    if values.ndim != 2 or values.shape[1] == 0:
        msg = f"{name}: shape {list(values.shape)}, but a matrix [stimuli, dim] is needed"
        raise ValueError(msg)
    check_rows(len(values), name, debiased)
    return values


def _in_place(x: Embedding, name: str) -> Matrix:
    values: Matrix = x
    if not hasattr(values, "detach"):
        return _as_array(values, name)
    values = values.detach()
    if str(values.layout) != "torch.strided" or values.device.type == "meta":
        msg = f"{name}: {values.layout} tensor on device {values.device}, but a dense one with values is needed"
        raise ValueError(msg)
    if values.is_floating_point() and values.element_size() < 2:
        msg = f"{name}: values of type {values.dtype}, but integers or floats of 16 bits or more are needed"
        raise ValueError(msg)
    # MPS has no float64, and numpy no bfloat16.
    if values.device.type not in ("cpu", "mps"):
        return values
    return (values.float() if str(values.dtype) == "torch.bfloat16" else values).cpu().numpy()


def _as_array(values: Matrix, name: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        msg = f"{name}: a masked array, whose mask CKA would leave out of account; give the rows that all models have"
        raise ValueError(msg)
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        msg = f"{name}: {type(values).__name__} that is no matrix [stimuli, dim] of real numbers: {error}"
        raise ValueError(msg) from error


def _mean(values: Matrix) -> Matrix:
    """Average the rows relative to the first, so that equal rows have exactly that row as their mean."""
    origin = _as_float64(values[0])
    step = max(1, CHUNK_VALUES // values.shape[1])
    total: Matrix = 0.0
    for start in range(0, len(values), step):
        chunk = _as_float64(values[start : start + step])
        chunk -= origin
        total += chunk.sum(0)
    return origin + total / len(values)


def _as_float64(values: Matrix) -> Matrix:
    """Copy to float64."""
    return values.astype(np.float64) if isinstance(values, np.ndarray) else values.double().clone()

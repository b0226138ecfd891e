"""Embeddings as at most n columns of unit Frobenius norm, for measures that rotations do not change."""

from __future__ import annotations

import numpy as np

from headstart.metrics.arrays import Array, is_tensor, namespace
from headstart.metrics.similarity.centred_embedding import CentredEmbedding, Workspace


def unit_norm(x: CentredEmbedding, measure: str) -> tuple[Array, float]:
    """Centre an embedding and scale it to Frobenius norm 1.

    Returns:
        In float64 `[n, d]`; and the largest singular value that rounding alone causes: with the precision e of the
        original values, an error of `e max|X|` in each causes singular values of about `e max|X| (sqrt(n) + sqrt(d))`.

    Raises:
        ValueError: The measure, by its name, is undefined, since all rows are equal.
    """
    values = x.centred(slice(None), Workspace())
    largest = float(abs(values).max())
    if largest == 0:
        raise ValueError(f"{x.name}: {measure} is undefined where all rows are equal")
    # First by the largest value, so that squares neither vanish nor exceed float64.
    values /= largest
    norm = float((values * values).sum()) ** 0.5
    values /= norm
    if not np.isfinite(float(values.sum())):
        raise ValueError(f"{x.name}: contains NaN or infinity")
    highest = max(abs(float(x.values.max())), abs(float(x.values.min())))
    n, d = values.shape
    return values, _precision(x) * highest / largest / norm * float(np.sqrt(n) + np.sqrt(d))


def narrow(x: CentredEmbedding, measure: str) -> tuple[Array, float]:
    """Return the result of `unit_norm`, rotated into at most n columns, `[n, min(n, d)]`.

    With `X^T = Q R`, the transposed triangle `R^T` has the Gram matrix of X.
    """
    values, rounding = unit_norm(x, measure)
    if len(values) >= x.width:
        return values, rounding
    triangle = namespace(values).linalg.qr(values.T, mode="r")
    return (triangle[1] if is_tensor(values) else triangle).T, rounding


def _precision(x: CentredEmbedding) -> float:
    """Return the relative precision of the original values; that of float64 for integers."""
    kind = x.values.dtype
    fractional = kind.is_floating_point if is_tensor(x.values) else kind.kind == "f"
    return float(namespace(x.values).finfo(kind).eps) if fractional else float(np.finfo(np.float64).eps)

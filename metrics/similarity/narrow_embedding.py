"""Embeddings as at most n columns of unit Frobenius norm, by which measures that no rotation changes are computed."""

from __future__ import annotations

import numpy as np

from metrics.arrays import Array, is_tensor, namespace
from metrics.similarity.centred_embedding import CentredEmbedding, Workspace


def unit_norm(x: CentredEmbedding, measure: str) -> Array:
    """Centre an embedding and scale it to Frobenius norm 1, in float64 `[n, d]`.

    Raises:
        ValueError: The measure, by its name, is undefined, since all rows are equal.
    """
    values = x.centred(slice(None), Workspace())
    largest = float(abs(values).max())
    if largest == 0:
        raise ValueError(f"{x.name}: {measure} is undefined where all rows are equal")
    # First by the largest, so that no square is lost or beyond float64.
    values /= largest
    values /= float((values * values).sum()) ** 0.5
    if not np.isfinite(float(values.sum())):
        raise ValueError(f"{x.name}: contains NaN or infinity")
    return values


def narrow(x: CentredEmbedding, measure: str) -> Array:
    """Give an embedding as `unit_norm` does, but rotated into at most n columns, float64 `[n, min(n, d)]`.

    With `X^T = Q R`, the transposed triangle `R^T` has the Gram matrix of X.
    """
    values = unit_norm(x, measure)
    if len(values) >= x.width:
        return values
    triangle = namespace(values).linalg.qr(values.T, mode="r")
    return (triangle[1] if is_tensor(values) else triangle).T

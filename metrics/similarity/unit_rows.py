"""Embeddings whose rows are scaled to length 1, so that products of rows are cosines or Pearson correlations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Array, namespace, to_host
from headstart.metrics.similarity.centred_embedding import CentredEmbedding, Embedding, Workspace, read_embeddings

# Rows shorter than this part of their largest value times the root of their width consist of rounding errors.
LOST = 1e-14


@dataclass(frozen=True)
class UnitRows(CentredEmbedding):
    """An embedding that is read as rows of length 1 instead of rows centred at their mean.

    Attributes:
        correlated: Whether the mean of each row's own values is subtracted first, so that products of rows are their
            Pearson correlations, rather than cosines.
        measure: The measure that is undefined where a row has no direction, for messages.
    """

    correlated: bool
    measure: str

    def centred(self, rows: slice | NDArray[np.intp], workspace: Workspace) -> Array:
        """Scale some rows to length 1, in float64 `[rows, d]`, and write them into the workspace.

        Raises:
            ValueError: A row is 0, or constant where rows are correlated, or its squares exceed float64.
        """
        values = workspace.take(self.mean, *self.values[rows].shape)
        values[:] = self.values[rows]

        largest = abs(values).max(1) if isinstance(values, np.ndarray) else abs(values).amax(1)
        if self.correlated:
            values -= values.mean(1)[:, None]
        with np.errstate(over="ignore"):
            lengths = namespace(values).sqrt((values * values).sum(1))
        on_host, least = to_host(lengths), LOST * self.width**0.5 * to_host(largest)
        if not np.isfinite(on_host).all():
            raise ValueError(f"{self.name}: contains NaN or infinity, or values whose squares exceed float64")
        if (degenerate := np.flatnonzero(on_host <= least)).size:
            state = "equal in all columns" if self.correlated else "0"
            row = np.arange(self.n)[rows][degenerate[0]]
            raise ValueError(f"{self.name}: {self.measure} is undefined where a row is {state}, as row {row} is")

        values /= lengths[:, None]
        return values

    def sum(self) -> Array:
        """Sum the rows of length 1, `[d]`."""
        total: Array = 0.0
        for chunk in self.chunks():
            total += chunk.sum(0)
        return total


def read_unit_rows(embeddings: Iterable[Embedding], measure: str, correlated: bool) -> list[UnitRows]:
    """Check embeddings `[n, d_i]` as `read_embeddings` does, and read them as `UnitRows`."""
    return [UnitRows(x.name, x.values, x.mean, correlated, measure) for x in read_embeddings(embeddings)]

"""Embeddings of all stimuli of a catalog, centred and scaled, and the mean CKA of the models on some of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.similarity.model_subset_search import check_size

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Embeddings = Sequence[NDArray[np.floating]]

# Rows that are read at a time.
ROWS = 4096
# A centred Gram matrix of smaller squared Frobenius norm vanishes: with embeddings of unit mean norm, its stimuli lie
# within about 1e-5 of one another, as copies of one image do after a float32 forward pass.
VANISHING = 1e-20


class CentredCatalog:
    """Embeddings centred on the catalog's mean and scaled to unit mean norm, which no CKA depends on.

    The embeddings stay where they are: only the requested rows are computed, in float64.

    Args:
        embeddings: One array per model, `[stimuli, dim]`, rows in the same order of stimuli.
        size: Stimuli to choose.

    Attributes:
        stimuli: Number of stimuli.

    Raises:
        ValueError: There are fewer than 2 models, a model has one embedding for all stimuli, or `size` is below 2 or
            above the number of stimuli.
    """

    def __init__(self, embeddings: Embeddings, size: int) -> None:
        if len(embeddings) < 2:
            raise ValueError(f"embeddings: CKA compares models, and there are {len(embeddings)}; give at least 2")
        self.stimuli = len(embeddings[0])
        check_size(size, self.stimuli, "stimuli")
        self._embeddings = embeddings
        self._means = [np.mean(embedding, axis=0, dtype=np.float64) for embedding in embeddings]
        self._norms = [self._mean_norm(index) for index in range(len(embeddings))]

    def _mean_norm(self, index: int) -> float:
        embedding, mean = self._embeddings[index], self._means[index]
        parts = [embedding[first : first + ROWS] for first in range(0, self.stimuli, ROWS)]
        norm = float(sum(np.linalg.norm(part - mean, axis=1).sum() for part in parts)) / self.stimuli
        if not norm > 1e-12 * max(float(np.abs(part).max()) for part in parts):
            raise ValueError(
                f"embeddings[{index}]: one embedding for all stimuli, or none that is finite; leave it out"
            )
        return norm

    def rows(self, stimuli: Sequence[int] | Indices) -> list[Floats]:
        """Return the centred and scaled embeddings of some stimuli, `[stimuli, dim]` of each model."""
        parts = zip(self._embeddings, self._means, self._norms, strict=True)
        return [(embedding[np.asarray(stimuli)] - mean) / norm for embedding, mean, norm in parts]

    def mean_cka(self, stimuli: Sequence[int] | Indices) -> float:
        """Compute the mean pairwise biased linear CKA on some stimuli; above 1 where they are all alike to a model."""
        grams = []
        for rows in self.rows(stimuli):
            centred = rows - rows.mean(axis=0)
            grams.append((centred @ centred.T).ravel())
        flat = np.stack(grams)
        return float(mean_cosine((flat @ flat.T)[None])[0])


def mean_cosine(products: Floats, smallest: Floats | float = VANISHING) -> Floats:
    """Average the cosines over all pairs of models, `[subsets]`.

    A pair counts as more than all others can add up to where a model's norm vanishes, so that such a subset is worse
    than any without, and one with fewer such models the better.

    Args:
        products: Inner products of the models' Gram matrices, `[subsets, models, models]`.
        smallest: Squared norms up to which they vanish, `[models]` or one for all.
    """
    norms = np.einsum("cii->ci", products)
    defined = norms > smallest
    weights = np.where(defined, 1 / np.sqrt(np.where(defined, norms, 1)), 0)
    sums = np.einsum("ci,ci->c", (products @ weights[:, :, None])[:, :, 0], weights)

    count = defined.sum(axis=1)
    pairs = products.shape[1] * (products.shape[1] - 1)
    return np.asarray((sums - count) / pairs + (pairs - count * (count - 1)))

"""A subset of stimuli that changes one by one, and the mean pairwise biased linear CKA of models on it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# A centred Gram matrix of smaller squared Frobenius norm vanishes: with embeddings of unit mean norm, its stimuli lie
# within about 1e-5 of one another, as copies of one image do after a float32 forward pass.
VANISHING = 1e-20
# What is left of such a norm once a member is taken out is rounding below this share of it.
CANCELLED = 1e-12
# Numbers in a block of matrices of inner products, so that it stays in the processor's cache.
BLOCK = 2**16


class Subset:
    """A subset of stimuli, with what tells the mean CKA after a change of one member.

    Linear CKA is a cosine between centred Gram matrices (Kornblith et al., Similarity of Neural Network Representations
    Revisited, ICML 2019, section 3), and a stimulus that joins adds a term of rank one to the cross-covariances of
    embeddings. With the origin at the mean of the s members, u_c the inner products of stimulus c with them and v_c its
    squared norm, the inner product of the Gram matrices of models i and j grows by
    2 a u_c^i·u_c^j + a² v_c^i v_c^j, a = s / (s + 1).

    Args:
        embeddings: One array per model, `[stimuli, dim]`, float64, centred on the catalog's mean, of unit mean norm.

    Attributes:
        members: Indices of the stimuli.
    """

    def __init__(self, embeddings: Sequence[Floats]) -> None:
        self.members: list[int] = []
        self._embeddings = embeddings
        self._origins = [np.zeros(embedding.shape[1]) for embedding in embeddings]
        # [stimuli, models, members], [stimuli, models], and the first's products [stimuli, models, models].
        self._columns = np.empty((len(embeddings[0]), len(embeddings), 0))
        self._distances = np.stack([np.einsum("nd,nd->n", each, each) for each in embeddings], axis=1)
        self._dots = np.zeros((*self._distances.shape, len(embeddings)))

    def add(self, stimulus: int) -> None:
        """Take a stimulus in.

        Args:
            stimulus: Its index.
        """
        column = self._column(stimulus)[:, :, None]
        self._columns = np.concatenate([self._columns, column], axis=2)
        self.members.append(stimulus)
        self._recentre()

    def exchange(self, place: int, stimulus: int) -> None:
        """Replace a member.

        Args:
            place: Position of the one that leaves, in `members`.
            stimulus: Index of the one that joins.
        """
        self._columns[:, :, place] = self._column(stimulus)
        self.members[place] = stimulus
        self._recentre()

    def value(self) -> float:
        """Give the mean pairwise CKA on the members."""
        return float(mean_cosine(self._products()[None])[0])

    def values_after_adding(self) -> Floats:
        """Give the mean pairwise CKA with each stimulus added, `[stimuli]`; infinite for members."""
        step = len(self.members) / (len(self.members) + 1)
        products = self._products()
        values = [
            mean_cosine(products + 2 * step * self._dots[block], [(step**2, self._distances[block])])
            for block in self._blocks()
        ]
        return self._without_members(np.concatenate(values))

    def values_after_exchange(self, place: int) -> Floats:
        """Give the mean pairwise CKA with each stimulus in place of a member.

        Without member o the origin lies elsewhere: with z = 1 / (s - 1), v_c turns into v_c + 2 z u_co + z² v_o, and
        u_c^i·u_c^j into (u_c^i + z u_o^i)·(u_c^j + z u_o^j) - (1 + z) y_c^i y_c^j, where y_c = u_co + z v_o. With c = o
        these give what o had added to the inner products of the Gram matrices.

        Args:
            place: Position of the member, in `members`.

        Returns:
            One value per stimulus, `[stimuli]`; infinite for members.
        """
        columns, size, leaver = self._columns, len(self.members), self.members[place]
        step, z = (size - 1) / size, 1 / (size - 1)
        own, own_dots = self._distances[leaver], self._dots[leaver]
        products = self._products()
        smallest = np.maximum(VANISHING, CANCELLED * products.diagonal())
        rest = products - 2 / step * own_dots + np.outer(own, own) / step**2
        values = []
        for block in self._blocks():
            toward = columns[block, :, place]
            cross = (columns[block].reshape(-1, size) @ columns[leaver].T).reshape(-1, *rest.shape)
            base = rest + 2 * step * (self._dots[block] + 2 * z * cross + z**2 * own_dots)
            distances = self._distances[block] + 2 * z * toward + z**2 * own
            values.append(mean_cosine(base, [(-2.0, toward + z * own), (step**2, distances)], smallest))
        return self._without_members(np.concatenate(values))

    def _column(self, stimulus: int) -> Floats:
        """Give the inner products of all stimuli with one, from the present origin, `[stimuli, models]`."""
        moved = [each[stimulus] - origin for each, origin in zip(self._embeddings, self._origins, strict=True)]
        parts = zip(self._embeddings, self._origins, moved, strict=True)
        return np.stack([embedding @ vector - origin @ vector for embedding, origin, vector in parts], axis=1)

    def _recentre(self) -> None:
        """Move the origin to the mean of the members."""
        moves = self._columns.mean(axis=2)
        lengths = moves[self.members].mean(axis=0)
        self._columns -= moves[:, :, None]
        self._columns -= moves[self.members].T - lengths[:, None]
        self._distances += lengths - 2 * moves
        self._origins = [embedding[self.members].mean(axis=0) for embedding in self._embeddings]
        np.matmul(self._columns, self._columns.transpose(0, 2, 1), out=self._dots)

    def _products(self) -> Floats:
        """Give the inner products of the models' centred Gram matrices on the members, `[models, models]`."""
        grams = self._columns[self.members].transpose(1, 0, 2).reshape(len(self._embeddings), -1)
        return grams @ grams.T

    def _blocks(self) -> list[slice]:
        stimuli, models = self._distances.shape
        length = max(1, BLOCK // models**2)
        return [slice(first, first + length) for first in range(0, stimuli, length)]

    def _without_members(self, values: Floats) -> Floats:
        values[self.members] = np.inf
        return values


def mean_cosine(
    base: Floats, squares: Sequence[tuple[float, Floats]] = (), smallest: Floats | float = VANISHING
) -> Floats:
    """Average the cosines over all pairs of models.

    A pair counts as more than all others can add up to where a model's norm vanishes, so that such a subset is worse
    than any without, and one with fewer such models the better.

    Args:
        base: First part of the inner products, `[subsets, models, models]`, of which the symmetric part counts.
        squares: Factors f and vectors x, `[subsets, models]`, of further parts f x x^T.
        smallest: Squared norms up to which they vanish, `[models]` or one for all.

    Returns:
        One mean per subset, `[subsets]`.
    """
    norms = np.einsum("cii->ci", base) + sum(factor * vectors**2 for factor, vectors in squares)
    defined = norms > smallest
    weights = np.where(defined, 1 / np.sqrt(np.where(defined, norms, 1)), 0)
    sums = np.einsum("ci,ci->c", (base @ weights[:, :, None])[:, :, 0], weights)
    for factor, vectors in squares:
        sums += factor * np.einsum("ci,ci->c", vectors, weights) ** 2
    count = defined.sum(axis=1)
    pairs = base.shape[1] * (base.shape[1] - 1)
    return np.asarray((sums - count) / pairs + (pairs - count * (count - 1)))

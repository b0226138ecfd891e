"""A catalog of stimuli, and a subset of it that exchanges members for stimuli on which the models agree less."""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.similarity.centred_embedding import CentredEmbedding
from headstart.metrics.similarity.model_subset_search import check_size

Embeddings = Sequence[NDArray[np.floating]]

# Rows that are read at a time.
ROWS = 4096
# A centred Gram matrix of smaller squared Frobenius norm vanishes: with embeddings of unit mean norm, its stimuli lie
# within about 1e-5 of one another, as copies of one image do after a float32 forward pass.
VANISHING = 1e-20
# Stimuli, or members, whose inner products are in memory at a time.
CHUNK = 128
# Share of the members that may be exchanged at once.
MOST_EXCHANGED = 0.25
# If no exchange of several helps, this many of the best joiners and best leavers are exchanged one for one.
SINGLES = 8
# Exchanges that lower the mean CKA by less count as rounding.
TOLERANCE = 1e-9
# Below this share, the rest of a squared norm after centring, or without a member, is a rounding error.
CANCELLED = 1e-12


class CentredCatalog:
    """Embeddings centred on the catalog's mean and scaled to unit mean norm, which no CKA depends on.

    The embeddings stay where they are: only the requested rows are computed, in float64.

    Args:
        embeddings: One array per model, `[stimuli, dim]`, rows in the same order of stimuli.
        size: Stimuli to choose.

    Attributes:
        stimuli: Number of stimuli.

    Raises:
        ValueError: There are fewer than 2 models, `size` is below 2 or above the number of stimuli, or as
            `CentredEmbedding.read`.
    """

    def __init__(self, embeddings: Embeddings, size: int) -> None:
        if len(embeddings) < 2:
            raise ValueError(f"embeddings: CKA compares models, and there are {len(embeddings)}; give at least 2")
        self.stimuli = len(embeddings[0])
        check_size(size, self.stimuli, "stimuli")
        self._embeddings = embeddings
        read = (CentredEmbedding.read(each, f"embeddings[{i}]", debiased=False) for i, each in enumerate(embeddings))
        self._means = [each.mean for each in read]
        self._norms = [self._mean_norm(index) for index in range(len(embeddings))]

    def _mean_norm(self, index: int) -> float:
        embedding, mean = self._embeddings[index], self._means[index]
        parts = (embedding[first : first + ROWS] for first in range(0, self.stimuli, ROWS))
        return float(sum(np.linalg.norm(part - mean, axis=1).sum() for part in parts)) / self.stimuli

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

    Where a model's norm vanishes, its pairs count more than all others can add up to. Such a subset is therefore worse
    than any without, and the fewer such models the better.

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


class StimulusSubset:
    """A subset of stimuli with the Gram matrices of all models on it.

    Linear CKA is a cosine between centred Gram matrices (Kornblith et al., "Similarity of Neural Network
    Representations Revisited", ICML 2019, section 3). A stimulus that joins adds a term of rank one to the
    cross-covariances of embeddings. Let the origin be at the mean of the s members, u_c the inner products of stimulus
    c with them and v_c its squared norm. The inner product of the Gram matrices of models i and j then grows by 2 a
    u_c^i·u_c^j + a² v_c^i v_c^j, a = s / (s + 1).

    Args:
        catalog: All stimuli.
        members: Indices of the subset.

    Attributes:
        members: Indices of the subset, in an order of its own.
        value: The mean pairwise biased linear CKA on it.
    """

    def __init__(self, catalog: CentredCatalog, members: Sequence[int]) -> None:
        self._catalog, self.members = catalog, np.array(members)
        self._rows = catalog.rows(self.members)
        # [models, members, members], from the catalog's mean; their row sums and their inner products.
        self._grams = np.stack([rows @ rows.T for rows in self._rows])
        self._sums = self._grams.sum(axis=2)
        flat = self._grams.reshape(len(self._grams), -1)
        self._inner = flat @ flat.T
        # Squared norms up to which centred Gram matrices are rounding errors, `[models]`.
        self._smallest = np.maximum(VANISHING, CANCELLED * self._inner.diagonal())
        self.value = float(mean_cosine(_centre(self._inner, self._sums)[None], self._smallest)[0])

    def exchange(self, stimuli: Indices) -> bool:
        """Exchange members for those of some stimuli that lower the mean CKA; return whether any does."""
        joiners = np.setdiff1d(stimuli, self.members)
        if not len(joiners):
            return False
        joined, left = self.values_after_adding(joiners), self.values_after_leaving()
        best_joiners, best_leavers = np.argsort(joined, kind="stable"), np.argsort(left, kind="stable")

        # First as many are exchanged as promise a gain, then half as many, and so on.
        pairs = min(len(joined), max(1, int(MOST_EXCHANGED * len(left))))
        gains = 2 * self.value - joined[best_joiners[:pairs]] - left[best_leavers[:pairs]]
        count = int((gains > TOLERANCE).sum())
        while count:
            if self._try(best_leavers[:count], joiners[best_joiners[:count]]):
                return True
            count //= 2

        singles = product(best_leavers[:SINGLES], best_joiners[:SINGLES])
        likely = sorted(singles, key=lambda pair: left[pair[0]] + joined[pair[1]])
        return any(self._try(np.array([leaver]), joiners[[joiner]]) for leaver, joiner in likely)

    def values_after_adding(self, stimuli: Indices) -> Floats:
        """Compute the mean CKA with each of some other stimuli added, `[stimuli]`."""
        step = len(self.members) / (len(self.members) + 1)
        products, values = _centre(self._inner, self._sums), []
        origins = [rows.mean(axis=0) for rows in self._rows]
        members = [(rows - origin).astype(np.float32) for rows, origin in zip(self._rows, origins, strict=True)]

        for first in range(0, len(stimuli), CHUNK):
            fresh = self._catalog.rows(stimuli[first : first + CHUNK])
            joiners = [(rows - origin).astype(np.float32) for rows, origin in zip(fresh, origins, strict=True)]
            pairs = zip(joiners, members, strict=True)
            toward = np.stack([joiner @ member.T for joiner, member in pairs], axis=1)
            dots = (toward @ toward.transpose(0, 2, 1)).astype(np.float64)
            lengths = np.stack([np.einsum("nd,nd->n", rows, rows) for rows in joiners], axis=1).astype(np.float64)
            joined = products + 2 * step * dots + step**2 * _squares(lengths)
            values.append(mean_cosine(joined, self._smallest))
        return np.concatenate(values)

    def values_after_leaving(self) -> Floats:
        """Compute the mean CKA without each of the members, `[members]`."""
        size = len(self.members)
        step = (size - 1) / size
        products, values = _centre(self._inner, self._sums), []
        means = self._sums / size
        centres = means.mean(axis=1)

        for first in range(0, size, CHUNK):
            chunk = slice(first, first + CHUNK)
            grams = self._grams[:, chunk] - means[:, None] - means[:, chunk, None] + centres[:, None, None]
            toward = grams.transpose(1, 0, 2)
            leavers = np.arange(len(toward))
            lengths = toward[leavers, :, first + leavers]
            dots = toward @ toward.transpose(0, 2, 1)
            left = products - 2 / step * dots + _squares(lengths) / step**2
            values.append(mean_cosine(left, self._smallest))
        return np.concatenate(values)

    def _try(self, positions: Indices, stimuli: Indices) -> bool:
        """Exchange the members at some positions for stimuli if that lowers the mean CKA; return whether it does."""
        fresh = self._catalog.rows(stimuli)
        before = self._grams[:, positions]
        after = np.stack([new @ rows.T for new, rows in zip(fresh, self._rows, strict=True)])
        after[:, :, positions] = np.stack([new @ new.T for new in fresh])

        inner = self._inner - _inner_products(before, positions) + _inner_products(after, positions)
        sums = self._sums + (after - before).sum(axis=1)
        sums[:, positions] = after.sum(axis=2)
        smallest = np.maximum(self._smallest, CANCELLED * inner.diagonal())
        value = float(mean_cosine(_centre(inner, sums)[None], smallest)[0])
        if value >= self.value - TOLERANCE:
            return False

        self.members[positions], self.value = stimuli, value
        self._inner, self._sums, self._smallest = inner, sums, smallest
        for rows, new in zip(self._rows, fresh, strict=True):
            rows[positions] = new
        self._grams[:, positions] = after
        self._grams[:, :, positions] = after.transpose(0, 2, 1)
        return True


def _squares(vectors: Floats) -> Floats:
    """Return x x^T of every vector, `[subsets, models]` to `[subsets, models, models]`."""
    return np.asarray(vectors[:, :, None] * vectors[:, None, :])


def _inner_products(rows: Floats, positions: Indices) -> Floats:
    """Compute the part that rows and columns at some positions have in the inner products of Gram matrices.

    Args:
        rows: The rows at these positions, `[models, positions, members]`.
        positions: Where they stand.
    """
    flat = rows.reshape(len(rows), -1)
    inside = rows[:, :, positions].reshape(len(rows), -1)
    return np.asarray(2 * flat @ flat.T - inside @ inside.T)


def _centre(inner: Floats, sums: Floats) -> Floats:
    """Compute the inner products of centred Gram matrices, `[models, models]`, from those of Gram matrices.

    Args:
        inner: Inner products of the Gram matrices, `[models, models]`.
        sums: Their row sums, `[models, members]`.
    """
    size = sums.shape[1]
    totals = sums.sum(axis=1)
    return np.asarray(inner - 2 / size * sums @ sums.T + np.outer(totals, totals) / size**2)

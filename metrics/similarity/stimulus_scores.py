"""How far models disagree on a subset of stimuli: 1 minus their mean linear CKA over pairs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.similarity.centred_embedding import read_embeddings
from headstart.metrics.similarity.subset_search import UNDEFINED, SubsetScores

Embeddings = Sequence[NDArray[np.floating]]

# A centred Gram matrix of smaller squared Frobenius norm vanishes: with embeddings of unit mean norm, its stimuli lie
# within about 1e-5 of one another, as copies of one image do after a float32 forward pass.
VANISHING = 1e-20
# Below this share, the rest of a squared norm after centring, or without a stimulus, is a rounding error.
CANCELLED = 1e-12


class StimulusScores(SubsetScores):
    """1 minus the mean pairwise biased linear CKA of models on a subset of stimuli.

    Linear CKA is a cosine between centred Gram matrices (Kornblith et al., "Similarity of Neural Network
    Representations Revisited", ICML 2019, section 3). Let the origin be at the mean of the s members, u_c the inner
    products of stimulus c with them and v_c its squared norm. If c joins, the inner product of the Gram matrices of
    models i and j grows by 2 a u_c^i·u_c^j + a² v_c^i v_c^j with a = s / (s + 1). If c leaves, it changes by
    -2 / b u_c^i·u_c^j + v_c^i v_c^j / b² with b = (s - 1) / s.

    The embeddings are centred on the mean of all stimuli and scaled to unit mean norm, on which no CKA depends. They
    stay where they are: rows of members and candidates alone are copied.

    Args:
        embeddings: One array per model, `[stimuli, dim]`, rows in the same order of stimuli.

    Raises:
        ValueError: There are fewer than 2 models; or as `read_embeddings`.
    """

    kind = "stimuli"

    def __init__(self, embeddings: Embeddings) -> None:
        if len(embeddings) < 2:
            raise ValueError(f"embeddings: CKA compares models, and there are {len(embeddings)}; give at least 2")
        super().__init__(len(embeddings[0]))
        self._read = read_embeddings(embeddings)
        self._norms = [float(np.sqrt(embedding.squared_lengths()).mean()) for embedding in self._read]
        self._candidate_rows: list[NDArray[np.floating]] = []
        self._members: Indices = np.arange(0)
        # Rows and Gram matrices of the members, from the mean of all stimuli.
        self._member_rows: list[NDArray[np.floating]] = self._rows(self._members, np.float64)
        self._inner = np.zeros((len(embeddings), 0, 0))

    def offer(self, candidates: Indices) -> None:
        """Set the stimuli that may join, and read their rows; float32 suffices to order them."""
        super().offer(candidates)
        self._candidate_rows = self._rows(candidates, np.float32)

    def score(self, members: Indices) -> float:
        """Return the score on a subset."""
        self._describe(members)
        return float(_scores(self._products[None], self._smallest)[0])

    def joining(self, members: Indices, positions: Indices) -> Floats:
        """Return the scores with each of some candidates, up to rounding to float32."""
        self._describe(members)
        toward, lengths = [], []
        for candidates, rows in zip(self._candidate_rows, self._member_rows, strict=True):
            centre = rows.mean(axis=0)
            moved = candidates[positions] - centre.astype(np.float32)
            toward.append(moved @ (rows - centre).astype(np.float32).T)
            lengths.append(np.einsum("nd,nd->n", moved, moved))

        step = len(members) / (len(members) + 1)
        dots = _pair_products(np.stack(toward, axis=1))
        grown = 2 * step * dots + step**2 * _pair_products(np.stack(lengths, axis=1)[:, :, None])
        return _scores(self._products + grown, self._smallest)

    def leaving(self, members: Indices) -> Floats:
        """Return the scores without each of the members."""
        self._describe(members)
        step = (len(members) - 1) / len(members)
        dots = _pair_products(self._grams.transpose(1, 0, 2))
        lengths = np.einsum("mss->sm", self._grams)
        grown = -2 / step * dots + _pair_products(lengths[:, :, None]) / step**2
        return _scores(self._products + grown, self._smallest)

    def _describe(self, members: Indices) -> None:
        """Compute the Gram matrices of a subset; what it has in common with the last one is not computed again."""
        if np.array_equal(members, self._members):
            return
        places = {stimulus: place for place, stimulus in enumerate(self._members.tolist())}
        earlier = np.array([places.get(stimulus, -1) for stimulus in members.tolist()])
        kept, fresh = np.flatnonzero(earlier >= 0), np.flatnonzero(earlier < 0)

        inner = np.empty((len(self._inner), len(members), len(members)))
        inner[:, kept[:, None], kept] = self._inner[:, earlier[kept][:, None], earlier[kept]]
        rows: list[NDArray[np.floating]] = []
        for gram, before, new in zip(inner, self._member_rows, self._rows(members[fresh], np.float64), strict=True):
            rows_of_model = np.empty((len(members), before.shape[1]))
            rows_of_model[kept], rows_of_model[fresh] = before[earlier[kept]], new
            gram[fresh] = new @ rows_of_model.T
            gram[:, fresh] = gram[fresh].T
            rows.append(rows_of_model)

        self._members, self._member_rows, self._inner = members.copy(), rows, inner
        means = inner.mean(axis=2)
        self._grams = inner - means[:, None] - means[:, :, None] + means.mean(axis=1)[:, None, None]
        flat, squares = self._grams.reshape(len(inner), -1), np.einsum("mst,mst->m", inner, inner)
        self._products, self._smallest = flat @ flat.T, np.maximum(VANISHING, CANCELLED * squares)

    def _rows(self, stimuli: Indices, kind: type[np.floating]) -> list[NDArray[np.floating]]:
        return [
            (embedding.values[stimuli].astype(kind) - embedding.mean.astype(kind)) / kind(norm)
            for embedding, norm in zip(self._read, self._norms, strict=True)
        ]


def _pair_products(vectors: Floats) -> Floats:
    """Return the inner products of all models' vectors, `[subsets, models, n]` to `[subsets, models, models]`."""
    return np.asarray(vectors @ vectors.transpose(0, 2, 1), dtype=np.float64)


def _scores(products: Floats, smallest: Floats) -> Floats:
    """Return 1 minus the mean cosine over pairs of models, `[subsets]`; `UNDEFINED` for each that vanishes.

    Args:
        products: Inner products of the models' centred Gram matrices, `[subsets, models, models]`.
        smallest: Squared norms up to which they vanish, `[models]`.
    """
    norms = np.einsum("cii->ci", products)
    defined = norms > smallest
    weights = 1 / np.sqrt(np.where(defined, norms, 1))
    models = products.shape[1]
    sums = np.einsum("ci,ci->c", (products @ weights[:, :, None])[:, :, 0], weights)
    vanishing = models - defined.sum(axis=1)
    scores = 1 - (sums - models) / (models * (models - 1))
    return np.asarray(np.where(vanishing == 0, scores, UNDEFINED * vanishing))

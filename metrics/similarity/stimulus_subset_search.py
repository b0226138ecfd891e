"""The subset of stimuli on which models disagree most, by mean pairwise biased linear CKA."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.similarity.centred_catalog import VANISHING, CentredCatalog, Embeddings, Floats, mean_cosine
from headstart.metrics.similarity.model_subset_search import Progress, Search, draw_values

# All subsets are enumerated where they are no more, and the Gram matrices of all models on all of them take no more
# numbers: about 2 s.
EXACT_LIMIT = 100_000
EXACT_NUMBERS = 1e8
# Random pairs of stimuli that the search grows from; the best subset in the end counts. More of them where they cost
# little, that is where the product of stimuli and size is small.
STARTS = 8
MOST_STARTS = 64
CHEAP = 20_000
# Rounds over all members in which each may be exchanged once.
ROUNDS = 10
# Exchanges that lower the mean CKA by less are taken for rounding.
TOLERANCE = 1e-9
# A mean CKA that is defined lies below, whatever the rounding.
LARGEST = 1.5

# What is left of such a norm once a member is taken out is rounding below this share of it.
CANCELLED = 1e-12
# Numbers in a block of matrices of inner products, so that it stays in the processor's cache.
BLOCK = 2**16


def worst_stimulus_subset(
    embeddings: Embeddings, size: int, seed: int = 0, progress: Progress = lambda done, total, note: None
) -> Search:
    """Find the stimuli on which the mean pairwise biased linear CKA of the models is lowest.

    All subsets are enumerated where there are at most `EXACT_LIMIT` and they are small. Otherwise, from each of several
    random pairs of stimuli, the subset is grown by the stimulus that leaves the lowest mean CKA. Then each member in
    turn is exchanged for the best other stimulus, if that lowers the mean CKA, until no exchange of one for one does,
    or for `ROUNDS` rounds. What is found is such a local optimum, not certainly the lowest.

    For N stimuli, m models, s chosen and D numbers per stimulus in all embeddings together, a stimulus that joins or is
    exchanged takes O(N (D + m² s)) operations, and each round O(N m² s²) besides: one start with N = 3,000, m = 12,
    s = 100 and D = 12,000 about 15 s on one core. Memory is N (D + 2 m s + m²) numbers of 8 bytes, never the N² of Gram
    matrices.

    Args:
        embeddings: One array per model, `[stimuli, dim]`, rows in the same order of stimuli.
        size: Stimuli to choose.
        seed: Seed of the starts.
        progress: Called with the steps that are done, all there are, and the score so far.

    Returns:
        The subset and the mean of biased linear CKA over pairs of models on it; exact where all were enumerated.

    Raises:
        ValueError: `size` is below 2 or above the number of stimuli, there are fewer than 2 models, a model has one
            embedding for all stimuli, or no subset was found on which every model tells stimuli apart.
    """
    catalog = CentredCatalog(embeddings, size)
    centred = catalog.all_rows()
    exact = is_enumerated(catalog.stimuli, len(centred), size)
    candidates = [_enumerate(centred, size)] if exact else _search(centred, size, seed, progress)
    value, chosen = min((catalog.mean_cka(chosen), chosen) for chosen in candidates)
    if value > LARGEST:
        raise ValueError(
            f"size: no {size} stimuli were found that every model tells apart; the catalog holds too many copies"
        )
    return Search(chosen, value, exact)


def is_enumerated(stimuli: int, models: int, size: int) -> bool:
    """Tell whether subsets of stimuli are few and small enough to go through all of them."""
    subsets = math.comb(stimuli, size)
    return subsets <= EXACT_LIMIT and subsets * models * size**2 <= EXACT_NUMBERS


def random_stimulus_subsets(embeddings: Embeddings, size: int, draws: int = 100, seed: int = 0) -> Floats:
    """Give the mean pairwise biased linear CKA of random subsets of stimuli, drawn independently, `[draws]`.

    Those on which a model tells no stimuli apart are drawn again. Arguments and errors as of `worst_stimulus_subset`.
    """
    catalog = CentredCatalog(embeddings, size)

    def value(subset: NDArray[np.intp]) -> float:
        found = catalog.mean_cka(subset)
        return found if found <= LARGEST else math.inf

    return draw_values(value, catalog.stimuli, size, draws, seed)


def _enumerate(embeddings: Sequence[Floats], size: int) -> tuple[int, ...]:
    """Find the best of all subsets."""
    grams = np.stack([rows @ rows.T for rows in embeddings], axis=-1)
    subsets = combinations(range(len(grams)), size)
    best: tuple[int, ...] = ()
    lowest = np.inf
    while block := list(islice(subsets, max(1, BLOCK // (len(embeddings) * size**2)))):
        members = np.array(block)
        inside = grams[members[:, :, None], members[:, None, :]]
        inside -= inside.mean(axis=1, keepdims=True)
        inside -= inside.mean(axis=2, keepdims=True)
        flat = inside.reshape(len(block), -1, len(embeddings))
        values = mean_cosine(flat.transpose(0, 2, 1) @ flat)
        leader = int(np.argmin(values))
        if values[leader] < lowest:
            best, lowest = block[leader], values[leader]
    return best


def _search(embeddings: Sequence[Floats], size: int, seed: int, progress: Progress) -> list[tuple[int, ...]]:
    """Grow a subset from each of several random pairs, and improve it by exchanges."""
    stimuli = len(embeddings[0])
    starts = max(STARTS, min(MOST_STARTS, CHEAP // (stimuli * size)))
    generator = np.random.default_rng(seed)
    found, lowest, note = [], math.inf, ""
    for start in range(starts):
        subset = Subset(embeddings)
        for stimulus in generator.choice(stimuli, 2, replace=False):
            subset.add(int(stimulus))
        while len(subset.members) < size:
            subset.add(int(np.argmin(subset.values_after_adding())))
            progress(start * (size + ROUNDS) + len(subset.members), starts * (size + ROUNDS), note)
        _exchange(subset)
        lowest = min(lowest, subset.value())
        note = f"score so far {1 - lowest:.4f}"
        progress((start + 1) * (size + ROUNDS), starts * (size + ROUNDS), note)
        found.append(tuple(sorted(subset.members)))
    return found


def _exchange(subset: Subset) -> None:
    """Exchange members for better stimuli, until no exchange of one for one is better or all rounds are over."""
    size, value = len(subset.members), subset.value()
    unchanged = 0
    for turn in range(ROUNDS * size):
        place = turn % size
        values = subset.values_after_exchange(place)
        best = int(np.argmin(values))
        if values[best] < value - TOLERANCE:
            subset.exchange(place, best)
            unchanged, value = 0, subset.value()
        unchanged += 1
        if unchanged == size:
            return


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
        """Take a stimulus in, by its index."""
        column = self._column(stimulus)[:, :, None]
        self._columns = np.concatenate([self._columns, column], axis=2)
        self.members.append(stimulus)
        self._recentre()

    def exchange(self, place: int, stimulus: int) -> None:
        """Replace the member at a place in `members` by the stimulus with an index."""
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
        """Give the mean pairwise CKA with each stimulus in place of a member, `[stimuli]`; infinite for members.

        Without member o the origin lies elsewhere: with z = 1 / (s - 1), v_c turns into v_c + 2 z u_co + z² v_o, and
        u_c^i·u_c^j into (u_c^i + z u_o^i)·(u_c^j + z u_o^j) - (1 + z) y_c^i y_c^j, where y_c = u_co + z v_o. With c = o
        these give what o had added to the inner products of the Gram matrices.
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

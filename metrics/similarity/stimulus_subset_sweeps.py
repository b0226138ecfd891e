"""The subset of a large catalog of stimuli on which models disagree most, block by block and within a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.similarity.centred_catalog import VANISHING, CentredCatalog, Embeddings, Floats, mean_cosine
from headstart.metrics.similarity.model_subset_search import Progress
from headstart.metrics.similarity.stimulus_subset_search import CANCELLED, LARGEST, TOLERANCE

# Stimuli that are looked at together, and of these, or of the members, those whose inner products are held at a time.
BLOCK, CHUNK = 1024, 128
# Share of the members that a block may exchange at once.
MOST_EXCHANGED = 0.25
# Where none of these helps: best joiners that are tried in place of each of as many best leavers, one at a time.
SINGLES = 8
# Blocks that are gone through at most where no time is set: ten sweeps through 100,000 stimuli.
STEPS = 1000


@dataclass(frozen=True)
class SweepState:
    """How far a search is: what it goes on from.

    Attributes:
        best: Indices of the best subset so far.
        value: Its mean pairwise biased linear CKA.
        seconds: How long the search has taken.
        members: Indices of the subset that is being improved, in the order that they are held in.
        restart: How many subsets were improved before this one.
        sweep: How many times the catalog was gone through for this one.
        block: How many blocks of the catalog were gone through since.
        unchanged: How many blocks in a row brought nothing.
    """

    best: tuple[int, ...]
    value: float
    seconds: float
    members: tuple[int, ...]
    restart: int = 0
    sweep: int = 0
    block: int = 0
    unchanged: int = 0


def sweep_stimulus_subset(
    embeddings: Embeddings,
    size: int,
    seed: int = 0,
    seconds: float | None = None,
    state: SweepState | None = None,
    keep: Callable[[SweepState], object] = lambda state: None,
    progress: Progress = lambda done, total, note: None,
) -> SweepState:
    """Find stimuli of a large catalog on which the mean pairwise biased linear CKA of the models is low.

    From a random subset on, the catalog is gone through in blocks, in a random order. Each stimulus of a block is
    valued by the mean CKA if it joined, each member by that if it left; the best joiners take the places of the best
    leavers, as many at once as lower the mean CKA: a quarter of the members at most, else half as many, and so on down
    to single exchanges among the best. It ends where a whole sweep brings nothing, or after `STEPS` blocks; with a
    time, other random subsets follow until that is over.

    For m models, s chosen and D numbers per stimulus in all embeddings together, a stimulus takes O(s (D + m²))
    operations per sweep, whatever the size of the catalog. Memory is about s (12 D + 8 m s) bytes besides the
    embeddings, which are read where they are: no Gram matrix of the catalog is made.

    Args:
        embeddings: One array per model, `[stimuli, dim]`, rows in the same order of stimuli.
        size: Stimuli to choose.
        seed: Seed of subsets and orders.
        seconds: How long the search may take, counted with that of `state`; it ends with the block after.
        state: Where to go on; by default at the beginning.
        keep: Called with the state at the beginning and after every block.
        progress: Called with how much is done, how much there is to do at most, and the score so far.

    Returns:
        The state at the end. Without a time it depends on embeddings and seed alone.

    Raises:
        ValueError: As of `worst_stimulus_subset`.
    """
    start = time.monotonic() - (0 if state is None else state.seconds)
    catalog = CentredCatalog(embeddings, size)
    blocks = -(-catalog.stimuli // BLOCK)
    if state is None:
        first = _random_subset(catalog.stimuli, size, seed, 0)
        state = SweepState(first, catalog.mean_cka(first), time.monotonic() - start, first)
        keep(state)
    subset = Members(catalog, state.members)
    while True:
        passed = time.monotonic() - start
        done = (passed, seconds) if seconds is not None else (state.sweep * blocks + state.block, STEPS)
        progress(int(min(done)), max(1, int(done[1])), f"score so far {1 - state.value:.4f}")
        if done[0] >= done[1]:
            return _end(catalog, state, passed)
        if state.unchanged == blocks:
            if seconds is None:
                return _end(catalog, state, passed)
            members = _random_subset(catalog.stimuli, size, seed, state.restart + 1)
            state = SweepState(state.best, state.value, passed, members, state.restart + 1)
            subset = Members(catalog, members)
        order = np.random.default_rng([seed, state.restart, state.sweep, 1]).permutation(catalog.stimuli)
        changed = subset.exchange(order[state.block * BLOCK : (state.block + 1) * BLOCK])
        best, value = state.best, state.value
        if changed and subset.value < value - TOLERANCE:
            best, value = tuple(sorted(subset.members.tolist())), subset.value
        sweep, block = divmod(state.sweep * blocks + state.block + 1, blocks)
        state = SweepState(
            best,
            value,
            time.monotonic() - start,
            tuple(subset.members.tolist()),
            state.restart,
            sweep,
            block,
            0 if changed else state.unchanged + 1,
        )
        keep(state)


def _end(catalog: CentredCatalog, state: SweepState, passed: float) -> SweepState:
    """Give the state at the end, its value computed afresh; a ValueError where there is none."""
    value = catalog.mean_cka(state.best)
    if value > LARGEST:
        raise ValueError(
            f"size: no {len(state.best)} stimuli were found that every model tells apart; the catalog holds too many "
            "copies"
        )
    return replace(state, value=value, seconds=passed)


def _random_subset(stimuli: int, size: int, seed: int, restart: int) -> tuple[int, ...]:
    drawn = np.random.default_rng([seed, restart, 0]).choice(stimuli, size, replace=False)
    return tuple(sorted(drawn.tolist()))


class Members:
    """A subset of stimuli with the Gram matrices of all models on it.

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
        self.value = float(mean_cosine(self._products()[None])[0])

    def exchange(self, stimuli: NDArray[np.intp]) -> bool:
        """Take in those of some stimuli that lower the mean CKA, in place of as many members; tell whether any does."""
        joiners = np.setdiff1d(stimuli, self.members)
        if not len(joiners):
            return False
        joined, left = self.values_after_adding(joiners), self.values_after_leaving()
        best_joiners, best_leavers = np.argsort(joined, kind="stable"), np.argsort(left, kind="stable")
        pairs = min(len(joined), max(1, int(MOST_EXCHANGED * len(left))))
        gains = 2 * self.value - joined[best_joiners[:pairs]] - left[best_leavers[:pairs]]
        count = int((gains > TOLERANCE).sum())
        while count:
            if self._try(best_leavers[:count], joiners[best_joiners[:count]]):
                return True
            count //= 2
        singles = product(best_leavers[:SINGLES], best_joiners[:SINGLES])
        likely = sorted(singles, key=lambda pair: left[pair[0]] + joined[pair[1]])
        return any(self._try(np.array([place]), joiners[[joiner]]) for place, joiner in likely)

    def values_after_adding(self, stimuli: NDArray[np.intp]) -> Floats:
        """Give the mean CKA with each of some other stimuli added, `[stimuli]`, as `Subset` has it."""
        size = len(self.members)
        step = size / (size + 1)
        products, values = self._products(), []
        origins = [rows.mean(axis=0) for rows in self._rows]
        centred = [(rows - origin).astype(np.float32) for rows, origin in zip(self._rows, origins, strict=True)]
        for first in range(0, len(stimuli), CHUNK):
            fresh = self._catalog.rows(stimuli[first : first + CHUNK])
            moved = [(rows - origin).astype(np.float32) for rows, origin in zip(fresh, origins, strict=True)]
            toward = np.stack([new @ old.T for new, old in zip(moved, centred, strict=True)], axis=1)
            distances = np.stack([np.einsum("nd,nd->n", new, new) for new in moved], axis=1).astype(np.float64)
            dots = (toward @ toward.transpose(0, 2, 1)).astype(np.float64)
            values.append(mean_cosine(products + 2 * step * dots, [(step**2, distances)]))
        return np.concatenate(values)

    def values_after_leaving(self) -> Floats:
        """Give the mean CKA without each of the members, `[members]`, as `Subset` has it."""
        size = len(self.members)
        step = (size - 1) / size
        products, values = self._products(), []
        smallest = np.maximum(VANISHING, CANCELLED * products.diagonal())
        means = self._sums / size
        centres = means.mean(axis=1)
        for first in range(0, size, CHUNK):
            chunk = slice(first, first + CHUNK)
            own = self._grams[:, chunk] - means[:, None] - means[:, chunk, None] + centres[:, None, None]
            rows = own.transpose(1, 0, 2)
            places = np.arange(len(rows))
            distances = rows[places, :, first + places]
            base = products - 2 / step * (rows @ rows.transpose(0, 2, 1))
            values.append(mean_cosine(base, [(1 / step**2, distances)], smallest))
        return np.concatenate(values)

    def _try(self, places: NDArray[np.intp], stimuli: NDArray[np.intp]) -> bool:
        """Exchange the members at some places for stimuli if that lowers the mean CKA."""
        old_rows, old_grams = [rows[places] for rows in self._rows], self._grams[:, places]
        before = (self.members.copy(), self._sums, self._inner, self.value)
        self._replace(places, self._catalog.rows(stimuli))
        self.members[places] = stimuli
        self.value = float(mean_cosine(self._products()[None])[0])
        if self.value < before[3] - TOLERANCE:
            return True
        self.members, self._sums, self._inner, self.value = before
        for rows, old in zip(self._rows, old_rows, strict=True):
            rows[places] = old
        self._grams[:, places] = old_grams
        self._grams[:, :, places] = old_grams.transpose(0, 2, 1)
        return False

    def _replace(self, places: NDArray[np.intp], fresh: Sequence[Floats]) -> None:
        """Put other embeddings at some places."""
        inner = self._inner - self._inner_at(places)
        before = self._grams[:, places]
        for gram, rows, new in zip(self._grams, self._rows, fresh, strict=True):
            rows[places] = new
            gram[places] = new @ rows.T
            gram[:, places] = gram[places].T
        after = self._grams[:, places]
        self._inner = inner + self._inner_at(places)
        self._sums = self._sums + (after - before).sum(axis=1)
        self._sums[:, places] = after.sum(axis=2)

    def _inner_at(self, places: NDArray[np.intp]) -> Floats:
        """Give what rows and columns at some places have in the inner products of the Gram matrices."""
        rows = self._grams[:, places].reshape(len(self._grams), -1)
        inside = self._grams[:, places[:, None], places].reshape(len(self._grams), -1)
        return np.asarray(2 * rows @ rows.T - inside @ inside.T)

    def _products(self) -> Floats:
        """Give the inner products of the centred Gram matrices, `[models, models]`."""
        size = len(self.members)
        totals = self._sums.sum(axis=1)
        return np.asarray(self._inner - 2 / size * self._sums @ self._sums.T + np.outer(totals, totals) / size**2)

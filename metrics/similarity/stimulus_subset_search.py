"""The subset of stimuli on which models disagree most, by mean pairwise biased linear CKA."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

from metrics.similarity.model_subset_search import Search, check_size
from metrics.similarity.stimulus_subset import BLOCK, Floats, Subset, mean_cosine
from output.errors import UserError

Embeddings = Sequence[NDArray[np.floating]]

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
# Draws per random subset that is wanted, before a catalog of copies is given up.
REDRAWS = 100


def worst_stimulus_subset(embeddings: Embeddings, size: int, seed: int = 0) -> Search:
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

    Returns:
        The subset and the mean of biased linear CKA over pairs of models on it; exact where all were enumerated.

    Raises:
        UserError: `size` is below 2 or above the number of stimuli, there are fewer than 2 models, a model has one
            embedding for all stimuli, or no subset was found on which every model tells stimuli apart.
    """
    centred = _normalise(embeddings, size)
    subsets = math.comb(len(centred[0]), size)
    exact = subsets <= EXACT_LIMIT and subsets * len(centred) * size**2 <= EXACT_NUMBERS
    candidates = [_enumerate(centred, size)] if exact else _search(centred, size, seed)
    value, chosen = min((_mean_cka(centred, chosen), chosen) for chosen in candidates)
    if value > LARGEST:
        msg = f"size: no {size} stimuli were found that every model tells apart; the catalog holds too many copies"
        raise UserError(msg)
    return Search(chosen, value, exact)


def random_stimulus_subsets(embeddings: Embeddings, size: int, draws: int = 100, seed: int = 0) -> Floats:
    """Give the mean pairwise biased linear CKA of random subsets of stimuli.

    Args:
        embeddings: One array per model, `[stimuli, dim]`, rows in the same order of stimuli.
        size: Stimuli in a subset.
        draws: Subsets, drawn independently; those on which a model tells no stimuli apart are drawn again.
        seed: Seed of the draws.

    Returns:
        One mean per subset, `[draws]`.

    Raises:
        UserError: As `worst_stimulus_subset`.
    """
    centred = _normalise(embeddings, size)
    generator = np.random.default_rng(seed)
    subsets = (generator.choice(len(centred[0]), size, replace=False) for _ in range(REDRAWS * draws))
    defined = (value for subset in subsets if (value := _mean_cka(centred, subset)) <= LARGEST)
    values = list(islice(defined, draws))
    if len(values) < draws:
        msg = f"size: hardly any {size} stimuli are told apart by every model; the catalog holds too many copies"
        raise UserError(msg)
    return np.array(values, dtype=np.float64)


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


def _search(embeddings: Sequence[Floats], size: int, seed: int) -> list[tuple[int, ...]]:
    """Grow a subset from each of several random pairs, and improve it by exchanges."""
    stimuli = len(embeddings[0])
    starts = max(STARTS, min(MOST_STARTS, CHEAP // (stimuli * size)))
    generator = np.random.default_rng(seed)
    found = []
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("Red Team search", total=starts * (size + ROUNDS))
        for start in range(1, starts + 1):
            subset = Subset(embeddings)
            for stimulus in generator.choice(stimuli, 2, replace=False):
                subset.add(int(stimulus))
            while len(subset.members) < size:
                subset.add(int(np.argmin(subset.values_after_adding())))
                progress.advance(task)
            _exchange(subset, partial(progress.advance, task))
            progress.update(task, completed=start * (size + ROUNDS))
            found.append(tuple(sorted(subset.members)))
    return found


def _exchange(subset: Subset, advance: Callable[[], None]) -> None:
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
        if place == size - 1:
            advance()


def _normalise(embeddings: Embeddings, size: int) -> list[Floats]:
    """Centre the embeddings on the catalog's mean and scale them to unit mean norm, which no CKA depends on."""
    if len(embeddings) < 2:
        msg = f"embeddings: CKA compares models, and there are {len(embeddings)}; give at least 2"
        raise UserError(msg)
    check_size(size, len(embeddings[0]), "stimuli")
    centred = []
    for index, embedding in enumerate(embeddings):
        rows = np.array(embedding, dtype=np.float64)
        rows -= rows.mean(axis=0)
        norm = float(np.linalg.norm(rows, axis=1).mean())
        if not norm > 1e-12 * float(np.abs(embedding).max()):
            msg = f"embeddings: model {index} has one embedding for all stimuli, or no finite ones; leave it out"
            raise UserError(msg)
        rows /= norm
        centred.append(rows)
    return centred


def _mean_cka(embeddings: Sequence[Floats], members: Sequence[int] | NDArray[np.intp]) -> float:
    """Give the mean pairwise CKA on a subset from its embeddings alone; above 1 where a model's Gram vanishes."""
    subsets = [embedding[np.asarray(members)] for embedding in embeddings]
    centred = [rows - rows.mean(axis=0) for rows in subsets]
    flat = np.stack([(rows @ rows.T).ravel() for rows in centred])
    return float(mean_cosine((flat @ flat.T)[None])[0])

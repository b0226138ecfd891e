"""The subset of stimuli on which models disagree most, by mean pairwise biased linear CKA or any other measure."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice

import numpy as np

from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.similarity.catalogue import SimilarityMeasure, mean_over_pairs
from headstart.metrics.similarity.model_subset_search import Progress, Search, sample_values
from headstart.metrics.similarity.stimulus_subset import (
    TOLERANCE,
    CentredCatalog,
    Embeddings,
    StimulusSubset,
    mean_cosine,
)

# All subsets are enumerated where there are no more, and where the Gram matrices of all models on all of them have no
# more numbers: about 2 s.
EXACT_LIMIT = 100_000
EXACT_NUMBERS = 1e8
# Numbers in the Gram matrices that are enumerated together, so that they stay in the processor's cache.
NUMBERS = 2**16
# Stimuli of the catalog that are valued together.
BLOCK = 1024
# Blocks that a search without a time goes through: two sweeps through 100,000 stimuli.
STEPS = 200
# Above any mean CKA that is defined, whatever the rounding.
LARGEST = 1.5
# Evaluations of the measure; all subsets are enumerated where there are no more.
EVALUATIONS = 2000


@dataclass(frozen=True)
class SearchState:
    """The state of a search, from which it can be resumed.

    Attributes:
        best: Indices of the best subset so far.
        value: Its mean pairwise biased linear CKA.
        seconds: How long the search has taken.
        members: Indices of the subset that is being improved, in the order of `StimulusSubset.members`.
        restart: Number of subsets that were improved before this one.
        sweep: Number of sweeps through the whole catalog for this subset.
        block: Number of blocks of the catalog since the last sweep.
        unchanged: Number of blocks in a row without an exchange.
        steps: Number of blocks for all subsets.
    """

    best: tuple[int, ...]
    value: float
    seconds: float
    members: tuple[int, ...]
    restart: int = 0
    sweep: int = 0
    block: int = 0
    unchanged: int = 0
    steps: int = 0


def worst_stimulus_subset(
    embeddings: Embeddings,
    size: int,
    seed: int = 0,
    seconds: float | None = None,
    state: SearchState | None = None,
    keep: Callable[[SearchState], object] = lambda state: None,
    progress: Progress = lambda done, total, note: None,
) -> tuple[Search, SearchState | None]:
    """Find the stimuli on which the mean pairwise biased linear CKA of the models is lowest.

    All subsets are enumerated where they are few and small. Otherwise random subsets are improved, one after the other:
    the catalog is gone through in blocks, in a random order. Each stimulus of a block is valued by the mean CKA if it
    joined, each member by that if it left. The best joiners replace the best leavers, as many as lower the mean CKA. At
    first a quarter of the members may be replaced, then half as many, and so on down to single exchanges among the
    best. After a whole sweep without an exchange the next random subset follows, until the time or `STEPS` blocks are
    over. The result is the best of these local optima, not certainly the lowest.

    Let there be m models, s chosen stimuli and D numbers per stimulus in all embeddings together. A stimulus takes O(s
    (D + m²)) operations per sweep, whatever the size of the catalog. Memory is about s (12 D + 8 m s) bytes besides the
    embeddings, which are not copied. No Gram matrix of the catalog is made.

    Args:
        embeddings: One array per model, `[stimuli, dim]`, rows in the same order of stimuli.
        size: Stimuli to choose.
        seed: Seed of subsets and orders.
        seconds: How long the search may take, counted with that of `state`; it ends with the block after.
        state: Where to resume; by default a new search begins. Not used where all subsets are enumerated.
        keep: Called with the state at the beginning and after every block.
        progress: Called with the steps or seconds done, the most there can be, and the score so far.

    Returns:
        The subset and the mean of biased linear CKA over pairs of models on it. Then the state at the end, None where
        all were enumerated. Without a time limit, both depend on embeddings and seed alone.

    Raises:
        ValueError: `size` is below 2 or above the number of stimuli; there are fewer than 2 models; a model has one
            embedding for all stimuli; or no subset was found on which every model distinguishes stimuli.
    """
    catalog = CentredCatalog(embeddings, size)
    subsets = math.comb(catalog.stimuli, size)
    if subsets <= EXACT_LIMIT and subsets * len(embeddings) * size**2 <= EXACT_NUMBERS:
        best, state = _enumerate(catalog, size), None
    else:
        state = _sweep(catalog, size, seed, seconds, state, keep, progress)
        best = state.best

    value = catalog.mean_cka(best)
    if value > LARGEST:
        raise ValueError(
            f"size: no {size} stimuli were found that every model distinguishes; the catalog holds too many copies"
        )
    return Search(best, value, exact=state is None), state and replace(state, value=value)


def random_stimulus_subsets(embeddings: Embeddings, size: int, count: int = 100, seed: int = 0) -> Floats:
    """Compute the mean pairwise biased linear CKA of random subsets of stimuli, sampled independently, `[count]`.

    Subsets on which a model distinguishes no stimuli are replaced. Arguments and errors as for `worst_stimulus_subset`.
    """
    catalog = CentredCatalog(embeddings, size)

    def value(subset: Indices) -> float:
        mean = catalog.mean_cka(subset)
        return mean if mean <= LARGEST else math.inf

    return sample_values(value, catalog.stimuli, size, count, seed)


def _enumerate(catalog: CentredCatalog, size: int) -> tuple[int, ...]:
    """Return the best of all subsets."""
    grams = np.stack([rows @ rows.T for rows in catalog.rows(range(catalog.stimuli))], axis=-1)
    models = grams.shape[-1]
    subsets = combinations(range(catalog.stimuli), size)
    best: tuple[int, ...] = ()
    lowest = np.inf
    while block := list(islice(subsets, max(1, NUMBERS // (models * size**2)))):
        members = np.array(block)
        inside = grams[members[:, :, None], members[:, None, :]]
        inside -= inside.mean(axis=1, keepdims=True)
        inside -= inside.mean(axis=2, keepdims=True)
        flat = inside.reshape(len(block), -1, models)
        values = mean_cosine(flat.transpose(0, 2, 1) @ flat)

        leader = int(np.argmin(values))
        if values[leader] < lowest:
            best, lowest = block[leader], values[leader]
    return best


def _sweep(
    catalog: CentredCatalog,
    size: int,
    seed: int,
    seconds: float | None,
    state: SearchState | None,
    keep: Callable[[SearchState], object],
    progress: Progress,
) -> SearchState:
    """Improve one random subset after the other, block by block of the catalog; arguments as for the search."""
    start = time.monotonic() - (0 if state is None else state.seconds)
    blocks = math.ceil(catalog.stimuli / BLOCK)
    if state is None:
        members = _random_subset(catalog.stimuli, size, seed, 0)
        state = SearchState(members, catalog.mean_cka(members), time.monotonic() - start, members)
        keep(state)
    subset = StimulusSubset(catalog, state.members)

    while True:
        state = replace(state, seconds=time.monotonic() - start)
        done, total = (state.steps, STEPS) if seconds is None else (state.seconds, seconds)
        progress(int(min(done, total)), max(1, int(total)), f"score so far {1 - state.value:.4f}")
        if done >= total:
            return state

        if state.unchanged == blocks:
            members = _random_subset(catalog.stimuli, size, seed, state.restart + 1)
            state = replace(state, members=members, restart=state.restart + 1, sweep=0, block=0, unchanged=0)
            subset = StimulusSubset(catalog, members)

        order = np.random.default_rng([seed, state.restart, state.sweep, 1]).permutation(catalog.stimuli)
        changed = subset.exchange(order[state.block * BLOCK : (state.block + 1) * BLOCK])
        state = _advance(state, subset, changed, blocks, time.monotonic() - start)
        keep(state)


def _advance(state: SearchState, subset: StimulusSubset, changed: bool, blocks: int, seconds: float) -> SearchState:
    """Return the state after a block."""
    best, value, members = state.best, state.value, subset.members.tolist()
    if subset.value < value - TOLERANCE:
        best, value = tuple(sorted(members)), subset.value
    sweep, block = divmod(state.sweep * blocks + state.block + 1, blocks)
    unchanged = 0 if changed else state.unchanged + 1
    return SearchState(best, value, seconds, tuple(members), state.restart, sweep, block, unchanged, state.steps + 1)


def _random_subset(stimuli: int, size: int, seed: int, restart: int) -> tuple[int, ...]:
    subset = np.random.default_rng([seed, restart, 0]).choice(stimuli, size, replace=False)
    return tuple(sorted(subset.tolist()))


def descend(
    measure: SimilarityMeasure,
    embeddings: Embeddings,
    start: Sequence[int],
    seed: int = 0,
    progress: Progress = lambda done, total, note: None,
) -> Search:
    """Find stimuli on which the mean pairwise similarity of the models is low.

    All subsets are enumerated where there are at most `EVALUATIONS`. Otherwise as many random exchanges of a member for
    another stimulus are tried, and those that lower the mean stay.

    Args:
        measure: The measure.
        embeddings: One array per model, `[stimuli, dim]`, rows in the same order of stimuli.
        start: Indices of the subset that is improved, of the same size as the result.
        seed: Seed of the exchanges.
        progress: Called with the evaluations done, all there are, and the mean so far.

    Returns:
        The subset and its mean over pairs; exact where all were enumerated.

    Raises:
        ValueError: The measure is undefined on all stimuli, or on every subset that was tried.
    """
    measure.pairwise(embeddings)  # names a model whose similarity no subset can define

    stimuli = len(embeddings[0])
    exact = math.comb(stimuli, len(start)) <= EVALUATIONS
    if exact:
        subsets = (np.array(subset) for subset in combinations(range(stimuli), len(start)))
        value, chosen = min(((_mean(measure, embeddings, each), each) for each in subsets), key=lambda pair: pair[0])
    else:
        generator = np.random.default_rng(seed)
        chosen, others = np.array(start), np.setdiff1d(np.arange(stimuli), start)
        value = _mean(measure, embeddings, chosen)
        for evaluation in range(EVALUATIONS):
            leaver, joiner = generator.integers(len(chosen)), generator.integers(len(others))
            chosen[leaver], others[joiner] = others[joiner], chosen[leaver]

            changed = _mean(measure, embeddings, chosen)
            if changed < value:
                value = changed
            else:
                chosen[leaver], others[joiner] = others[joiner], chosen[leaver]
            progress(evaluation + 1, EVALUATIONS, f"similarity so far {value:.4f}")

    if math.isinf(value):
        raise ValueError(
            f"size: on none of the {len(start)} stimuli that were tried is {measure.title} defined for every model"
        )
    return Search(tuple(sorted(chosen.tolist())), value, exact)


def random_mean_similarities(
    measure: SimilarityMeasure, embeddings: Embeddings, size: int, count: int = 100, seed: int = 0
) -> Floats:
    """Compute the mean pairwise similarities of random subsets of stimuli, sampled independently, `[count]`.

    Subsets on which the measure is undefined are replaced. Arguments as for `descend`.

    Raises:
        ValueError: The measure is undefined on nearly all subsets.
    """
    return sample_values(lambda subset: _mean(measure, embeddings, subset), len(embeddings[0]), size, count, seed)


def _mean(measure: SimilarityMeasure, embeddings: Embeddings, members: Indices) -> float:
    """Compute the mean over pairs on a subset, infinite where it is undefined."""
    try:
        return mean_over_pairs(measure.pairwise([embedding[members] for embedding in embeddings])[0])
    except ValueError:
        return math.inf

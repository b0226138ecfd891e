"""A search for a strong submission of one team, and the scores that it is compared with."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.alignment.scoring import Embeddings, explain_embedding_errors
from headstart.evaluation.alignment.search_files import SearchFiles
from headstart.metrics.arrays import Floats
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES, mean_over_pairs
from headstart.metrics.similarity.model_subset_search import Search, best_model_subset, random_model_subsets
from headstart.metrics.similarity.stimulus_subset_search import (
    SearchState,
    descend,
    random_mean_similarities,
    random_stimulus_subsets,
    worst_stimulus_subset,
)
from headstart.output.progress import Progress

# Random submissions to compare with, and how many where each takes more operations than this.
RANDOM, FEW_RANDOM, COSTLY = 100, 10, 1e9


@dataclass(frozen=True)
class SubmissionSearch:
    """A search for the models that agree most (Blue Team), or the stimuli that set models apart most (Red Team).

    Attributes:
        team: The team.
        size: Models, or stimuli, of the submission.
        measure: Name of the measure of similarity.
        seed: Seed of the search and of random submissions.
        seconds: Time of the search; None for a search that ends by itself.
    """

    team: Literal["blue", "red"]
    size: int
    measure: str
    seed: int
    seconds: float | None

    def find(
        self, embeddings: Embeddings, files: SearchFiles, state: SearchState | None
    ) -> tuple[Search, SearchState | None]:
        """Return the best submission by its score, and the state from which a later search can be resumed.

        Args:
            embeddings: The embeddings that the search sees.
            files: Where the best so far is written meanwhile.
            state: Where to resume.
        """
        with explain_embedding_errors(list(embeddings)):
            if self.team == "red":
                return self._find_stimuli(list(embeddings.values()), files, state)
            with _progress("Blue Team search", "percent") as show:
                return best_model_subset(self._similarity(embeddings), self.size, self.seconds, show), None

    def _find_stimuli(
        self, embeddings: Sequence[NDArray[np.float32]], files: SearchFiles, state: SearchState | None
    ) -> tuple[Search, SearchState | None]:
        is_default = self.measure == DEFAULT_MEASURE
        keep = files.keep if is_default else lambda state: None
        with _progress("Red Team search", "steps" if self.seconds is None else "seconds") as show:
            best, state = worst_stimulus_subset(embeddings, self.size, self.seed, self.seconds, state, keep, show)
        if not is_default:
            with _progress("Red Team search", "steps") as show:
                best = descend(SIMILARITY_MEASURES[self.measure], embeddings, best.chosen, self.seed, show)
            state = None
        return replace(best, value=1 - best.value), state

    def score(self, embeddings: Embeddings, chosen: Sequence[int]) -> float:
        """Score a submission, given by indices, on some stimuli or by some models."""
        if self.team == "blue":
            names = list(embeddings)
            compared = {names[i]: embeddings[names[i]] for i in chosen}
        else:
            compared = {name: each[list(chosen)] for name, each in embeddings.items()}
        with explain_embedding_errors(list(compared)):
            mean = mean_over_pairs(self._similarity(compared))
        return mean if self.team == "blue" else 1 - mean

    def random_scores(self, embeddings: Embeddings) -> Floats:
        """Score random submissions."""
        with explain_embedding_errors(list(embeddings)):
            if self.team == "blue":
                return random_model_subsets(self._similarity(embeddings), self.size, RANDOM, self.seed)

            values = list(embeddings.values())
            operations = self.size**2 * sum(each.shape[1] for each in values)
            count = RANDOM if operations <= COSTLY else FEW_RANDOM
            if self.measure == DEFAULT_MEASURE:
                return 1 - random_stimulus_subsets(values, self.size, count, self.seed)
            return 1 - random_mean_similarities(SIMILARITY_MEASURES[self.measure], values, self.size, count, self.seed)

    def _similarity(self, embeddings: Embeddings) -> Floats:
        return SIMILARITY_MEASURES[self.measure].pairwise(embeddings.values())[0]


@contextmanager
def _progress(title: str, unit: str) -> Iterator[Callable[[int, int, str], None]]:
    """Return a function that shows the progress from its first call on: an enumeration has none."""
    with ExitStack() as stack:
        bars: list[Progress] = []

        def show(done: int, total: int, note: str) -> None:
            # The work of an earlier search says nothing about the pace of this one.
            if not bars:
                bars.append(stack.enter_context(Progress(title, total - done, unit, before=done)))
            bars[0].show(done - bars[0].before, note)

        yield show

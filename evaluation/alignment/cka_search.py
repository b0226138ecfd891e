"""`headstart cka-search`: submissions that give a team a strong start."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from jsonargparse.typing import NonNegativeInt, PositiveFloat, PositiveInt
from numpy.typing import NDArray

from headstart.contract.documents import CATALOG_MAX_BYTES, catalog_path, read_catalog, read_registry, registry_path
from headstart.evaluation.alignment.held_out import HeldOut, hold_out
from headstart.evaluation.alignment.scoring import RowsByModel, conditions, explain_embedding_errors, represent
from headstart.evaluation.alignment.search_files import SEARCH, SUBMISSION, SearchFiles, print_search, state_of
from headstart.evaluation.embeddings import Extraction
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES, MeasureName, mean_over_pairs
from headstart.metrics.similarity.model_subset_search import Search, best_model_subset, check_size, random_model_subsets
from headstart.metrics.similarity.stimulus_subset_descent import descend, random_mean_similarities
from headstart.metrics.similarity.stimulus_subset_search import (
    is_enumerated,
    random_stimulus_subsets,
    worst_stimulus_subset,
)
from headstart.metrics.similarity.stimulus_subset_sweeps import SweepState, sweep_stimulus_subset
from headstart.output.errors import UserError
from headstart.output.files import output_folder, refuse_other_results
from headstart.output.printable import print_written
from headstart.output.progress import Progress

# Random submissions to compare with, and how many where each takes more operations than this.
DRAWS, FEW_DRAWS, COSTLY = 100, 10, 1e9
# Stimuli times models times chosen ones up to which subsets of stimuli are grown, which takes minutes.
GROWN = 1e7


def cka_search(
    team: Literal["blue", "red"],
    size: PositiveInt,
    measure: MeasureName = DEFAULT_MEASURE,
    registry: str | None = None,
    catalog: str | None = None,
    max_catalog_bytes: PositiveInt = CATALOG_MAX_BYTES,
    held_out: float | list[str] = 0.0,
    time_budget: PositiveFloat | None = None,
    output: str = "runs/cka-search",
    overwrite: bool = False,
    seed: NonNegativeInt = 0,
    extraction: Extraction = Extraction(),  # noqa: B008 - frozen
) -> dict[str, Any]:
    """Search a strong submission: models that agree most (Blue Team), or stimuli that set models apart most (Red Team).

    Writes submission.json, which `headstart cka` scores, and prints how far its score lies above those of
    random submissions of the same size.

    Args:
        team: Team that the submission is for.
        size: Models, or stimuli, of the submission; 2 or more.
        measure: How similarity is measured; the contract scores by linear CKA, whatever a submission was searched by.
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        catalog: Stimuli catalog; by default the file in HACKATHON_STIMULI_CATALOG, else configs/stimuli_catalog.jsonl.
        max_catalog_bytes: Larger catalogs are refused.
        held_out: What the search does not see, so that a second score tells what it is worth elsewhere: a share, such
            as 0.5, of the stimuli (Blue Team) or of the models (Red Team), or names of data sets, or of models.
        time_budget: Seconds after which the search ends with the best so far; the result then depends on the machine.
            By default it ends by itself. A Red Team search that was cut off goes on by the same command.
        output: Folder for submission.json and search.json.
        overwrite: Replace results of another configuration that lie in the folder, and begin anew.
        seed: Seed of the search's starting points, of the random submissions and of what is held out.
        extraction: How embeddings are computed.

    Returns:
        What search.json holds.
    """
    folder = output_folder("output", output)
    if time_budget is not None and not math.isfinite(time_budget):
        raise UserError(
            f"time_budget: {time_budget} never ends; give seconds, or none to have the search end by itself"
        )
    if time_budget is not None and team == "red" and measure != DEFAULT_MEASURE:
        raise UserError(
            f"time_budget: {time_budget} is given, but stimuli are searched in a time by {DEFAULT_MEASURE} alone"
        )
    known = read_registry(registry_path(registry))
    stimuli = read_catalog(catalog_path(catalog), int(max_catalog_bytes))
    names = list(known.entries)
    pool, things = (len(names), "models") if team == "blue" else (len(stimuli.stimuli), "stimuli")
    with explain_embedding_errors(names):
        check_size(int(size), pool, things)
    datasets = [stimulus.dataset_name for stimulus in stimuli.stimuli]
    divided = hold_out(held_out, team, datasets if team == "blue" else names, int(seed))
    named = {} if measure == DEFAULT_MEASURE else {"measure": measure}
    asked = {**named, "team": team, "size": int(size), "seed": int(seed)}
    shared = conditions(known, stimuli, names, extraction)
    made_from = {"measure": None, **asked, "held_out/asked": held_out or None, **shared}
    refuse_other_results([folder / SEARCH, folder / SUBMISSION], made_from, overwrite)
    files = SearchFiles(
        folder,
        "models" if team == "blue" else "differentiating_images",
        names if team == "blue" else [each.model_dump() for each in stimuli.stimuli],
        {
            **asked,
            **({} if time_budget is None else {"time_budget": time_budget}),
            **({} if divided is None else {"held_out": {"asked": held_out}}),
        },
        {
            "extraction": extraction.score_settings,
            "digests": {name: shared[f"digests/{name}"] for name in ("registry", "catalog", "networks")},
        },
    )
    left = files.left() if team == "red" and not overwrite else None
    rows = represent(names, stimuli.stimuli, known, extraction).rows
    seen, unseen = (rows, rows) if divided is None else _divide(rows, divided)
    search = _Search(measure, int(size), int(seed), time_budget)
    with explain_embedding_errors(list(seen)):
        if team == "blue":
            best, state = search.models(seen), None
        else:
            best, state = search.stimuli(seen, files, left)
    score, told = best.value, {}
    if divided is not None:
        score = search.score(team, rows, best.chosen)
        told = {"held_out": divided.describe(best.value, search.score(team, unseen, best.chosen))}
    with explain_embedding_errors(names):
        draws = search.random(team, rows)
    document, written = files.write(
        best.chosen,
        {
            "finished": True,
            "score": score,
            "exact": best.exact,
            **({} if best.bound is None else {"bound": best.bound, "gap": best.bound - best.value}),
            **told,
            "random": {
                "draws": len(draws),
                "mean": float(draws.mean()),
                "standard_deviation": float(draws.std(ddof=1)),
                "highest": float(draws.max()),
            },
            **({} if state is None else state_of(state)),
        },
    )
    print_search(document, pool, divided, SIMILARITY_MEASURES[measure].title if named else "")
    print_written(written)
    return document


def _divide(rows: RowsByModel, divided: HeldOut) -> tuple[RowsByModel, RowsByModel]:
    """Give what the search sees and what it does not: the stimuli, or the models."""
    if divided.things == "stimuli":
        seen, unseen = ({name: each[part] for name, each in rows.items()} for part in (divided.seen, divided.unseen))
    else:
        names = list(rows)
        seen, unseen = ({names[i]: rows[names[i]] for i in part} for part in (divided.seen, divided.unseen))
    return seen, unseen


@dataclass(frozen=True)
class _Search:
    """A search for models, or for stimuli, and what else is scored in its way."""

    measure: MeasureName
    size: int
    seed: int
    seconds: float | None

    def models(self, rows: RowsByModel) -> Search:
        """Find models that agree on stimuli."""
        with _progress("Blue Team search", "percent") as show:
            return best_model_subset(self._similarity(rows), self.size, self.seconds, show)

    def stimuli(
        self, rows: RowsByModel, files: SearchFiles, left: SweepState | None
    ) -> tuple[Search, SweepState | None]:
        """Find stimuli that set models apart; give also what a later search can go on from."""
        embeddings, state = list(rows.values()), None
        numbers = len(embeddings[0]) * len(embeddings) * self.size
        with _progress("Red Team search", "steps" if self.seconds is None else "seconds") as show:
            if is_enumerated(len(embeddings[0]), len(embeddings), self.size) or (
                self.seconds is None and left is None and numbers <= GROWN
            ):
                best = worst_stimulus_subset(embeddings, self.size, self.seed, show)
            else:
                keep = files.keep if self.measure == DEFAULT_MEASURE else lambda state: None
                state = sweep_stimulus_subset(embeddings, self.size, self.seed, self.seconds, left, keep, show)
                best = Search(state.best, state.value, exact=False)
        if self.measure != DEFAULT_MEASURE:
            with _progress("Red Team search", "steps") as show:
                best = descend(SIMILARITY_MEASURES[self.measure], embeddings, best.chosen, self.seed, show)
            state = None
        return replace(best, value=1 - best.value), state

    def score(self, team: str, rows: RowsByModel, chosen: Sequence[int]) -> float:
        """Score a submission on some stimuli, or by some models."""
        if team == "blue":
            names = list(rows)
            compared = {names[i]: rows[names[i]] for i in chosen}
        else:
            compared = {name: each[list(chosen)] for name, each in rows.items()}
        with explain_embedding_errors(list(compared)):
            mean = mean_over_pairs(self._similarity(compared))
        return mean if team == "blue" else 1 - mean

    def random(self, team: str, rows: RowsByModel) -> NDArray[np.float64]:
        """Score random submissions."""
        if team == "blue":
            return random_model_subsets(self._similarity(rows), self.size, DRAWS, self.seed)
        embeddings = list(rows.values())
        numbers = self.size**2 * sum(each.shape[1] for each in embeddings)
        draws = DRAWS if numbers <= COSTLY else FEW_DRAWS
        if self.measure == DEFAULT_MEASURE:
            return 1 - random_stimulus_subsets(embeddings, self.size, draws, self.seed)
        return 1 - random_mean_similarities(SIMILARITY_MEASURES[self.measure], embeddings, self.size, draws, self.seed)

    def _similarity(self, rows: RowsByModel) -> NDArray[np.float64]:
        return SIMILARITY_MEASURES[self.measure].pairwise(rows.values())[0]


@contextmanager
def _progress(title: str, unit: str) -> Iterator[Callable[[int, int, str], None]]:
    """Give what shows how much of how much is done, from the first on: an enumeration has none."""
    with ExitStack() as shown:
        bars: list[Progress] = []

        def show(done: int, total: int, note: str) -> None:
            # What a search before has done is no measure of this one's pace.
            if not bars:
                bars.append(shown.enter_context(Progress(title, total - done, unit, before=done)))
            bars[0].show(done - bars[0].before, note)

        yield show

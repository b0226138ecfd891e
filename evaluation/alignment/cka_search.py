"""`headstart cka-search`: submissions as a strong start for a team."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jsonargparse.typing import NonNegativeInt, PositiveFloat, PositiveInt

from headstart.evaluation.alignment.scoring import (
    CatalogOptions,
    Embeddings,
    conditions,
    explain_embedding_errors,
    represent,
)
from headstart.evaluation.alignment.search_files import SEARCH, SUBMISSION, SearchFiles, print_search, state_fields
from headstart.evaluation.alignment.submission_search import SubmissionSearch
from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES, MeasureName
from headstart.metrics.similarity.model_subset_search import Search, check_size
from headstart.output.errors import UserError
from headstart.output.printable import print_written
from headstart.output.results_folder import ResultsFolder

# A similarity needs at least 2 stimuli, and a mean over pairs 2 models.
LEAST = 2


class SearchResults(CatalogOptions, ResultsFolder):
    """Options of `headstart cka-search` that it shares with other commands, and the folder of its results."""


def cka_search(
    team: Literal["blue", "red"],
    size: PositiveInt,
    measure: MeasureName = DEFAULT_MEASURE,
    held_out: float | list[str] = 0.0,
    time_budget: PositiveFloat | None = None,
    output: str = "runs/cka-search",
    seed: NonNegativeInt = 0,
    **options: Any,
) -> dict[str, Any]:
    """Search for a strong submission: models that agree (Blue Team), or stimuli on which models differ (Red Team).

    It writes submission.json, which `headstart cka` scores. It compares the score with random submissions of the same
    size.

    Args:
        team: Team that the submission is for.
        size: Number of models or stimuli of the submission; 2 or more.
        measure: Measure of similarity to search by. The contract still scores by linear CKA.
        held_out: Stimuli (Blue Team) or models (Red Team) that the search does not see, for a second score. Give a
            share such as 0.5, or names of data sets (Blue Team) or models (Red Team).
        time_budget: Seconds after which the search ends with the best so far. The result then depends on the machine.
            By default the search ends by itself. The same command continues an interrupted Red Team search, unless
            --overwrite=true starts it again.
        output: Folder for submission.json and search.json.
        seed: Seed of the search's starting points, the random submissions and the held-out part.
        **options: Options of `SearchResults`.

    Returns:
        The contents of search.json.
    """
    results = SearchResults(default=output, names=(SEARCH, SUBMISSION), output=output, **options)
    _check_time_budget(time_budget, team, measure)
    setup, stimuli = results.setup, results.setup.catalog.stimuli
    names = list(setup.registry.entries)
    entries = names if team == "blue" else [each.model_dump() for each in stimuli]
    with explain_embedding_errors(names):
        check_size(int(size), len(entries), "models" if team == "blue" else "stimuli")
    divided = [each.dataset_name for each in stimuli] if team == "blue" else names
    division = hold_out(held_out, team, divided, int(seed))

    named = {} if measure == DEFAULT_MEASURE else {"measure": measure}
    header: dict[str, Any] = {**named, "team": team, "size": int(size), "seed": int(seed)}
    shared = conditions(names, setup)
    results.check_configuration({"measure": None, **header, "held_out/asked": held_out or None, **shared})
    if time_budget is not None:
        header["time_budget"] = time_budget
    if division is not None:
        header["held_out"] = {"asked": held_out}
    digests = {name: shared[f"digests/{name}"] for name in ("registry", "catalog", "networks")}
    footer = {"extraction": shared["extraction"], "digests": digests}
    files = SearchFiles(results.path, team, entries, header, footer)

    state = files.read_state() if team == "red" and not results.overwrite else None
    embeddings = represent(names, stimuli, setup).embeddings
    search = SubmissionSearch(team, int(size), measure, int(seed), time_budget)
    seen, unseen = (embeddings, embeddings) if division is None else division.divide(embeddings)
    best, state = search.find(seen, files, state)

    score, held = best.value, {}
    if division is not None:
        score = search.score(embeddings, best.chosen)
        held = {"held_out": division.describe(best.value, search.score(unseen, best.chosen))}
    result = {**_describe(score, best), **held, "random": _describe_random(search.random_scores(embeddings))}
    document, written = files.write(best.chosen, {**result, **({} if state is None else state_fields(state))})
    print_search(document, len(entries), SIMILARITY_MEASURES[measure].title if named else "")
    print_written(written)
    return document


def _check_time_budget(time_budget: float | None, team: str, measure: str) -> None:
    if time_budget is None:
        return
    if not math.isfinite(time_budget):
        raise UserError(f"time_budget: {time_budget} never ends; give seconds, or omit it")
    if team == "red" and measure != DEFAULT_MEASURE:
        raise UserError(
            f"time_budget: {time_budget} is given, but a search for stimuli supports it only for {DEFAULT_MEASURE}"
        )


def _describe(score: float, best: Search) -> dict[str, Any]:
    bound = {} if best.bound is None else {"bound": best.bound, "gap": best.bound - best.value}
    return {"finished": True, "score": score, "exact": best.exact, **bound}


def _describe_random(scores: Floats) -> dict[str, Any]:
    spread = float(scores.std(ddof=1))
    return {
        "draws": len(scores),
        "mean": float(scores.mean()),
        "standard_deviation": spread,
        "highest": float(scores.max()),
    }


@dataclass(frozen=True)
class HeldOut:
    """A division of stimuli, or of models, into those that a search sees and those that it does not.

    Attributes:
        option: The value of the option: a share, or names.
        items: Kind of the items to divide: `stimuli` or `models`.
        seen: Indices of those that the search sees, ascending.
        unseen: Indices of the others, ascending.
    """

    option: float | list[str]
    items: str
    seen: Indices
    unseen: Indices

    def divide(self, embeddings: Embeddings) -> tuple[Embeddings, Embeddings]:
        """Return the seen and the unseen part of embeddings."""
        parts = (self.seen, self.unseen)
        if self.items == "stimuli":
            seen, unseen = ({name: each[part] for name, each in embeddings.items()} for part in parts)
        else:
            names = list(embeddings)
            seen, unseen = ({names[i]: embeddings[names[i]] for i in part} for part in parts)
        return seen, unseen

    def describe(self, score_seen: float, score_unseen: float) -> dict[str, Any]:
        """Return the division and both scores as JSON values."""
        return {
            "asked": self.option,
            "of": self.items,
            "n_seen": len(self.seen),
            "n_held_out": len(self.unseen),
            "score_seen": score_seen,
            "score_held_out": score_unseen,
        }


def hold_out(option: float | list[str], team: str, names: Sequence[str], seed: int) -> HeldOut | None:
    """Divide stimuli or models into a part that a search sees and a part that it does not.

    Args:
        option: Share that is held out, sampled at random; or names of what is held out; 0 for nothing.
        team: The Blue Team's stimuli are divided, the Red Team's models.
        names: The data set of each stimulus, or the name of each model.
        seed: Seed of the random share.

    Raises:
        UserError: The share is not between 0 and 1, a name is unknown, or a side keeps fewer than two.
    """
    if not option:
        return None
    items, kind = ("stimuli", "data sets") if team == "blue" else ("models", "models")

    if isinstance(option, list):
        if unknown := sorted(set(option) - set(names)):
            choices = ", ".join(sorted(set(names)))
            raise UserError(
                f"held_out: there are no {kind} {', '.join(unknown)}; choose from {choices}, or give a share"
            )
        unseen = np.flatnonzero(np.isin(names, option))
    elif not 0 <= option < 1:
        raise UserError(f"held_out: {option} is not a share; give a number from 0 to below 1, or names of {kind}")
    else:
        order = np.random.default_rng([seed, len(names)]).permutation(len(names))
        unseen = np.sort(order[: round(option * len(names))])

    seen = np.setdiff1d(np.arange(len(names)), unseen)
    if min(len(seen), len(unseen)) < LEAST:
        raise UserError(
            f"held_out: {option} leaves {len(seen)} {items} to choose by and {len(unseen)} held out; "
            f"each takes {LEAST} or more"
        )
    return HeldOut(option, items, seen, unseen)

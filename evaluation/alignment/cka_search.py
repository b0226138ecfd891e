"""`headstart cka-search`: submissions that give a team a strong start."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from jsonargparse.typing import NonNegativeInt, PositiveFloat, PositiveInt
from numpy.typing import NDArray

from headstart.evaluation.alignment.catalog_options import CatalogOptions
from headstart.evaluation.alignment.held_out import hold_out
from headstart.evaluation.alignment.scoring import conditions, explain_embedding_errors, represent
from headstart.evaluation.alignment.search_files import SEARCH, SUBMISSION, SearchFiles, print_search, state_fields
from headstart.evaluation.alignment.submission_search import SubmissionSearch
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES, MeasureName
from headstart.metrics.similarity.model_subset_search import Search, check_size
from headstart.output.errors import UserError
from headstart.output.printable import print_written
from headstart.output.results_folder import ResultsFolder


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
    """Search a strong submission: models that agree most (Blue Team), or stimuli that set models apart most (Red Team).

    Writes submission.json, which `headstart cka` scores, and prints how far its score lies above those of
    random submissions of the same size.

    Args:
        team: Team that the submission is for.
        size: Models, or stimuli, of the submission; 2 or more.
        measure: How similarity is measured; the contract scores by linear CKA, whatever a submission was searched by.
        held_out: What the search does not see, so that a second score tells what it is worth elsewhere: a share, such
            as 0.5, of the stimuli (Blue Team) or of the models (Red Team), or names of data sets, or of models.
        time_budget: Seconds after which the search ends with the best so far; the result then depends on the machine.
            By default it ends by itself. A Red Team search that was cut off goes on by the same command, unless
            --overwrite=true has it begin anew.
        output: Folder for submission.json and search.json.
        seed: Seed of the search's starting points, of the random submissions and of what is held out.
        **options: Options of `SearchResults`.

    Returns:
        What search.json holds.
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
    result = {**_describe(score, best), **held, **_describe_random(search.random_scores(embeddings))}
    document, written = files.write(best.chosen, {**result, **({} if state is None else state_fields(state))})
    print_search(document, len(entries), SIMILARITY_MEASURES[measure].title if named else "")
    print_written(written)
    return document


def _check_time_budget(time_budget: float | None, team: str, measure: str) -> None:
    if time_budget is None:
        return
    if not math.isfinite(time_budget):
        raise UserError(
            f"time_budget: {time_budget} never ends; give seconds, or none to have the search end by itself"
        )
    if team == "red" and measure != DEFAULT_MEASURE:
        raise UserError(
            f"time_budget: {time_budget} is given, but stimuli are searched in a time by {DEFAULT_MEASURE} alone"
        )


def _describe(score: float, best: Search) -> dict[str, Any]:
    bound = {} if best.bound is None else {"bound": best.bound, "gap": best.bound - best.value}
    return {"finished": True, "score": score, "exact": best.exact, **bound}


def _describe_random(scores: NDArray[np.float64]) -> dict[str, Any]:
    return {
        "random": {
            "draws": len(scores),
            "mean": float(scores.mean()),
            "standard_deviation": float(scores.std(ddof=1)),
            "highest": float(scores.max()),
        }
    }

"""`headstart cka-search`: submissions that give a team a strong start."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from jsonargparse.typing import NonNegativeInt, PositiveFloat, PositiveInt
from numpy.typing import NDArray

from headstart.contract.documents import CATALOG_MAX_BYTES, catalog_path, read_catalog, read_registry, registry_path
from headstart.evaluation.alignment.held_out import hold_out
from headstart.evaluation.alignment.scoring import conditions, explain_embedding_errors, represent
from headstart.evaluation.alignment.search_files import SEARCH, SUBMISSION, SearchFiles, print_search, state_fields
from headstart.evaluation.alignment.submission_search import SubmissionSearch
from headstart.evaluation.embeddings import Extraction
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES, MeasureName
from headstart.metrics.similarity.model_subset_search import Search, check_size
from headstart.output.errors import UserError
from headstart.output.files import output_folder, refuse_other_results
from headstart.output.printable import print_written


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
    _check_time_budget(time_budget, team, measure)
    known = read_registry(registry_path(registry))
    stimuli = read_catalog(catalog_path(catalog), int(max_catalog_bytes))
    names = list(known.entries)
    entries = names if team == "blue" else [each.model_dump() for each in stimuli.stimuli]
    with explain_embedding_errors(names):
        check_size(int(size), len(entries), "models" if team == "blue" else "stimuli")
    divided_names = [each.dataset_name for each in stimuli.stimuli] if team == "blue" else names
    division = hold_out(held_out, team, divided_names, int(seed))

    named = {} if measure == DEFAULT_MEASURE else {"measure": measure}
    header: dict[str, Any] = {**named, "team": team, "size": int(size), "seed": int(seed)}
    shared = conditions(known, stimuli, names, extraction)
    made_from = {"measure": None, **header, "held_out/asked": held_out or None, **shared}
    refuse_other_results([folder / SEARCH, folder / SUBMISSION], made_from, overwrite)
    if time_budget is not None:
        header["time_budget"] = time_budget
    if division is not None:
        header["held_out"] = {"asked": held_out}
    digests = {name: shared[f"digests/{name}"] for name in ("registry", "catalog", "networks")}
    files = SearchFiles(folder, team, entries, header, {"extraction": extraction.score_settings, "digests": digests})

    state = files.read_state() if team == "red" and not overwrite else None
    embeddings = represent(names, stimuli.stimuli, known, extraction).embeddings
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

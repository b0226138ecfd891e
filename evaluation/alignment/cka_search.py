"""`evaluate.py cka-search`: submissions that give a team a strong start."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from jsonargparse.typing import NonNegativeInt, PositiveInt
from numpy.typing import NDArray

from contract.documents import CATALOG_MAX_BYTES, catalog_path, read_catalog, read_registry, registry_path
from contract.schema import CONTRACT_VERSION
from evaluation.alignment.scoring import RowsByModel, conditions, naming_models, represent
from evaluation.embeddings import Extraction
from metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES, MeasureName
from metrics.similarity.model_subset_search import Search, best_model_subset, check_size, random_model_subsets
from metrics.similarity.stimulus_subset_descent import descend, random_mean_similarities
from metrics.similarity.stimulus_subset_search import random_stimulus_subsets, worst_stimulus_subset
from output.files import output_folder, refuse_other_results, write_texts
from output.printable import print_written
from output.progress import Progress

SEARCH, SUBMISSION = "search.json", "submission.json"
DRAWS = 100
ROUNDING = 1e-9


def cka_search(
    team: Literal["blue", "red"],
    size: PositiveInt,
    measure: MeasureName = DEFAULT_MEASURE,
    registry: str | None = None,
    catalog: str | None = None,
    max_catalog_bytes: PositiveInt = CATALOG_MAX_BYTES,
    output: str = "runs/cka-search",
    overwrite: bool = False,
    seed: NonNegativeInt = 0,
    extraction: Extraction = Extraction(),  # noqa: B008 - frozen
) -> dict[str, Any]:
    """Search a strong submission: models that agree most (Blue Team), or stimuli that set models apart most (Red Team).

    Writes submission.json, which `evaluate.py cka` scores, and prints how far its score lies above those of 100
    random submissions of the same size.

    Args:
        team: Team that the submission is for.
        size: Models, or stimuli, of the submission; 2 or more.
        measure: How similarity is measured; the contract scores by linear CKA, whatever a submission was searched by.
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        catalog: Stimuli catalog; by default the file in HACKATHON_STIMULI_CATALOG, else configs/stimuli_catalog.jsonl.
        max_catalog_bytes: Larger catalogs are refused.
        output: Folder for submission.json and search.json.
        overwrite: Replace results of another configuration that lie in the folder.
        seed: Seed of the search's starting points and of the random submissions.
        extraction: How embeddings are computed.

    Returns:
        What search.json holds.
    """
    folder = output_folder("output", output)
    known = read_registry(registry_path(registry))
    stimuli = read_catalog(catalog_path(catalog), int(max_catalog_bytes))
    names = list(known.entries)
    pool, things = (len(names), "models") if team == "blue" else (len(stimuli.stimuli), "stimuli")
    with naming_models(names):
        check_size(int(size), pool, things)
    asked = {"team": team, "size": int(size), "seed": int(seed)}
    named = {} if measure == DEFAULT_MEASURE else {"measure": measure}
    shared = conditions(known, stimuli, names, extraction)
    made_from = {"measure": None, **named, **asked, **shared}
    refuse_other_results([folder / SEARCH, folder / SUBMISSION], made_from, overwrite)
    rows = represent(names, stimuli.stimuli, known, extraction).rows
    find = _search_models if team == "blue" else _search_stimuli
    with naming_models(names):
        found, draws = find(rows, measure, int(size), int(seed))
    document = {
        "contract_version": CONTRACT_VERSION,
        **named,
        **asked,
        "score": found.value,
        "exact": found.exact,
        **({} if found.bound is None else {"bound": found.bound, "gap": found.bound - found.value}),
        "random": {
            "draws": len(draws),
            "mean": float(draws.mean()),
            "standard_deviation": float(draws.std(ddof=1)),
            "highest": float(draws.max()),
        },
        "extraction": extraction.told,
        "digests": {name: shared[f"digests/{name}"] for name in ("registry", "catalog", "networks")},
    }
    submission: dict[str, Any] = {"contract_version": CONTRACT_VERSION}
    if team == "blue":
        submission["models"] = [names[i] for i in found.chosen]
    else:
        submission["differentiating_images"] = [stimuli.stimuli[i].model_dump() for i in found.chosen]
    written = {SUBMISSION: submission, SEARCH: document}
    files = write_texts(folder, {name: json.dumps(content, indent=1) + "\n" for name, content in written.items()})
    _report(document, pool, SIMILARITY_MEASURES[measure].title)
    print_written(files)
    return document


def _search_models(rows: RowsByModel, measure: str, size: int, seed: int) -> tuple[Search, NDArray[np.float64]]:
    similarity, _ = SIMILARITY_MEASURES[measure].pairwise(rows.values())
    with _progress("Blue Team search") as show:
        best = best_model_subset(similarity, size, progress=show)
    return best, random_model_subsets(similarity, size, DRAWS, seed)


def _search_stimuli(rows: RowsByModel, measure: str, size: int, seed: int) -> tuple[Search, NDArray[np.float64]]:
    embeddings, by = list(rows.values()), SIMILARITY_MEASURES[measure]
    with _progress("Red Team search") as show:
        best = worst_stimulus_subset(embeddings, size, seed, show)
    if measure == DEFAULT_MEASURE:
        draws = random_stimulus_subsets(embeddings, size, DRAWS, seed)
    else:
        with _progress("Red Team search") as show:
            best = descend(by, embeddings, best.chosen, seed, show)
        draws = random_mean_similarities(by, embeddings, size, DRAWS, seed)
    return replace(best, value=1 - best.value), 1 - draws


@contextmanager
def _progress(title: str) -> Iterator[Callable[..., None]]:
    """Give what shows how many steps of how many are done, from the first on: an enumeration has none."""
    with ExitStack() as shown:
        bars: list[Progress] = []

        def show(done: int, total: int, note: str = "") -> None:
            if not bars:
                bars.append(shown.enter_context(Progress(title, total, "steps")))
            bars[0].show(done, note)

        yield show


def _report(document: dict[str, Any], pool: int, title: str) -> None:
    """Print how far the submission lies above random ones."""
    best, random = document["score"], document["random"]
    above, spread = best - random["mean"], random["standard_deviation"]
    exact = "the best there is" if document["exact"] else "the best that was found"
    by = f" by {title}" if "measure" in document else ""
    bound = (
        ""
        if document.get("gap", 0) == 0
        else f"; none scores above {document['bound']:.6f}, {document['gap']:.6f} more"
    )
    print(f"{document['team'].title()} Team score {best:.6f}{by} with {document['size']} of {pool}, {exact}{bound}")
    # Where all random submissions score the same, their spread is a rounding error.
    deviations = f" ({above / spread:.1f} standard deviations)" if spread > ROUNDING else ""
    print(
        f"{random['draws']} random submissions: mean {random['mean']:.6f}, standard deviation {spread:.6f}, "
        f"highest {random['highest']:.6f}; this one lies {above:.6f} above their mean{deviations}"
    )

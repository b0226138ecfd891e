"""`evaluate.py cka-search`: submissions that give a team a strong start."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from jsonargparse.typing import NonNegativeInt, PositiveInt
from numpy.typing import NDArray

from contract.documents import Catalog, Registry, catalog_path, read_catalog, read_registry, registry_path
from contract.schema import CONTRACT_VERSION
from evaluation.alignment.scoring import measure, represent
from evaluation.extraction import Extraction
from metrics.similarity.model_subset_search import Search, best_model_subset, check_size, random_model_subsets
from metrics.similarity.stimulus_subset_search import random_stimulus_subsets, worst_stimulus_subset
from output.files import output_folder, write_texts

DRAWS = 100
ROUNDING = 1e-9


def cka_search(
    team: Literal["blue", "red"],
    size: PositiveInt,
    registry: str | None = None,
    catalog: str | None = None,
    output: str = "runs/cka-search",
    seed: NonNegativeInt = 0,
    extraction: Extraction = Extraction(),  # noqa: B008 - frozen
) -> None:
    """Search a strong submission: models that agree most (Blue Team), or stimuli that set models apart most (Red Team).

    Writes submission.json, which `evaluate.py cka` scores, and prints how far its score lies above those of 100
    random submissions of the same size.

    Args:
        team: Team that the submission is for.
        size: Models, or stimuli, of the submission; 2 or more.
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        catalog: Stimuli catalog; by default the file in HACKATHON_STIMULI_CATALOG, else configs/stimuli_catalog.jsonl.
        output: Folder for submission.json and search.json.
        seed: Seed of the search's starting points and of the random submissions.
        extraction: How embeddings are computed.
    """
    folder = output_folder("output", output)
    known, stimuli = read_registry(registry_path(registry)), read_catalog(catalog_path(catalog))
    pool, things = (len(known.entries), "models") if team == "blue" else (len(stimuli.stimuli), "stimuli")
    check_size(int(size), pool, things)
    find = _search_models if team == "blue" else _search_stimuli
    submission, found, draws = find(known, stimuli, int(size), int(seed), extraction)
    document = {
        "contract_version": CONTRACT_VERSION,
        "team": team,
        "size": int(size),
        "seed": int(seed),
        "score": found.value,
        "exact": found.exact,
        "random": {
            "draws": len(draws),
            "mean": float(draws.mean()),
            "standard_deviation": float(draws.std(ddof=1)),
            "highest": float(draws.max()),
        },
        "extraction": {"precision": extraction.precision, "seed": extraction.seed},
        "digests": {"registry": known.sha256, "catalog": stimuli.sha256},
    }
    texts = {
        name: json.dumps(content, indent=1) + "\n"
        for name, content in (("submission.json", submission), ("search.json", document))
    }
    files = write_texts(folder, texts)
    _report(document, pool)
    print(f"wrote {', '.join(map(str, files))}")


def _search_models(
    registry: Registry, catalog: Catalog, size: int, seed: int, options: Extraction
) -> tuple[dict[str, Any], Search, NDArray[np.float64]]:
    found = represent(tuple(registry.entries), catalog.stimuli, registry, options)
    similarity, _ = measure(found.rows)
    best = best_model_subset(similarity, size)
    names = list(found.rows)
    submission = {"contract_version": CONTRACT_VERSION, "models": [names[i] for i in best.chosen]}
    return submission, best, random_model_subsets(similarity, size, DRAWS, seed)


def _search_stimuli(
    registry: Registry, catalog: Catalog, size: int, seed: int, options: Extraction
) -> tuple[dict[str, Any], Search, NDArray[np.float64]]:
    embeddings = list(represent(tuple(registry.entries), catalog.stimuli, registry, options).rows.values())
    best = worst_stimulus_subset(embeddings, size, seed)
    chosen = [catalog.stimuli[i].model_dump() for i in best.chosen]
    submission = {"contract_version": CONTRACT_VERSION, "differentiating_images": chosen}
    return submission, replace(best, value=1 - best.value), 1 - random_stimulus_subsets(embeddings, size, DRAWS, seed)


def _report(document: dict[str, Any], pool: int) -> None:
    """Print how far the submission lies above random ones."""
    best, random = document["score"], document["random"]
    above, spread = best - random["mean"], random["standard_deviation"]
    exact = "the best there is" if document["exact"] else "the best that was found"
    print(f"{document['team'].title()} Team score {best:.6f} with {document['size']} of {pool}, {exact}")
    # Where all random submissions score the same, their spread is a rounding error.
    deviations = f" ({above / spread:.1f} standard deviations)" if spread > ROUNDING else ""
    print(
        f"{random['draws']} random submissions: mean {random['mean']:.6f}, standard deviation {spread:.6f}, "
        f"highest {random['highest']:.6f}; this one lies {above:.6f} above their mean{deviations}"
    )

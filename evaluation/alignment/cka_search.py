"""`evaluate.py cka-search`: submissions that give a team a strong start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jsonargparse.typing import PositiveInt
from numpy.typing import NDArray

from cli.errors import UserError
from evaluation.alignment.model_subset_search import best_model_subset, random_model_subsets
from evaluation.alignment.scoring import align
from evaluation.alignment.stimulus_subset_search import random_stimulus_subsets, worst_stimulus_subset
from evaluation.contract.documents import Catalog, Registry, catalog_path, read_catalog, read_registry, registry_path
from evaluation.contract.schema import CONTRACT_VERSION
from evaluation.extraction import Extraction

DRAWS = 100


def cka_search(
    team: Literal["blue", "red"],
    size: PositiveInt,
    registry: str | None = None,
    catalog: str | None = None,
    output: str = "runs/cka-search",
    seed: int = 0,
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
    known, stimuli = read_registry(registry_path(registry)), read_catalog(catalog_path(catalog))
    pool = len(known.entries) if team == "blue" else len(stimuli.stimuli)
    if not 2 <= size <= pool:
        what = "models in the registry" if team == "blue" else "stimuli in the catalog"
        msg = f"size: {size} is given; 2 to {pool} is allowed, the {what}"
        raise UserError(msg)
    find = _search_models if team == "blue" else _search_stimuli
    submission, best, draws = find(known, stimuli, int(size), seed, extraction)
    document = {
        "contract_version": CONTRACT_VERSION,
        "team": team,
        "size": int(size),
        "seed": seed,
        "score": best,
        "random": {
            "draws": len(draws),
            "mean": float(draws.mean()),
            "standard_deviation": float(draws.std(ddof=1)),
            "highest": float(draws.max()),
        },
        "digests": {"registry": known.sha256, "catalog": stimuli.sha256},
    }
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = [_write(folder / "submission.json", submission), _write(folder / "search.json", document)]
    except OSError as error:
        msg = f"output: {output!r} cannot be written ({error}); choose another folder"
        raise UserError(msg) from error
    mean, spread = draws.mean(), draws.std(ddof=1)
    print(f"{team.title()} Team score {best:.6f} with {size} of {pool}")
    print(
        f"{len(draws)} random submissions: mean {mean:.6f}, standard deviation {spread:.6f}, "
        f"highest {draws.max():.6f}; this one lies {best - mean:.6f} above their mean"
        + (f" ({(best - mean) / spread:.1f} standard deviations)" if spread > 0 else "")
    )
    print(f"wrote {', '.join(map(str, files))}")


def _search_models(
    registry: Registry, catalog: Catalog, size: int, seed: int, options: Extraction
) -> tuple[dict[str, Any], float, NDArray[np.float64]]:
    names = list(registry.entries)
    similarity = align(names, catalog.stimuli, registry, options).biased
    found = best_model_subset(similarity, size)
    submission = {"contract_version": CONTRACT_VERSION, "models": [names[i] for i in found.chosen]}
    return submission, found.value, random_model_subsets(similarity, size, DRAWS, seed)


def _search_stimuli(
    registry: Registry, catalog: Catalog, size: int, seed: int, options: Extraction
) -> tuple[dict[str, Any], float, NDArray[np.float64]]:
    embeddings = align(list(registry.entries), catalog.stimuli, registry, options).embeddings
    found = worst_stimulus_subset(embeddings, size, seed)
    chosen = [catalog.stimuli[i].model_dump() for i in found.chosen]
    submission = {"contract_version": CONTRACT_VERSION, "differentiating_images": chosen}
    return submission, 1 - found.value, 1 - random_stimulus_subsets(embeddings, size, DRAWS, seed)


def _write(path: Path, document: dict[str, Any]) -> Path:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
    partial.replace(path)
    return path

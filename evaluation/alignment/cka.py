"""`evaluate.py cka`: alignment of frozen backbones, and the scores of submissions."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jsonargparse.typing import PositiveInt

from cli.errors import UserError
from evaluation.alignment.modal_scoring import modal_enabled, score_on_modal
from evaluation.alignment.score_files import print_score, write_score
from evaluation.alignment.score_log import append_score, log_folder
from evaluation.alignment.scoring import Alignment, align, score
from evaluation.contract.documents import Catalog, Registry, catalog_path, read_catalog, read_registry, registry_path
from evaluation.contract.schema import CONTRACT_VERSION
from evaluation.contract.submissions import DEFAULT_MAX_BYTES, read_submission
from evaluation.dashboard import Dashboard, publish_score
from evaluation.extraction import Extraction

# What of a score goes into the log; the matrix stays in the score's own file.
LOGGED = ("contract_version", "team", "score", "n_models", "n_stimuli", "mean_cka_biased", "mean_cka_debiased")


def cka(
    team: Literal["blue", "red"] | None = None,
    submission: str | None = None,
    models: list[str] | None = None,
    layers: list[str] | None = None,
    registry: str | None = None,
    catalog: str | None = None,
    output: str = "runs/cka",
    log_dir: str | None = None,
    max_submission_bytes: PositiveInt = DEFAULT_MAX_BYTES,
    save_embeddings: bool = False,
    extraction: Extraction = Extraction(),  # noqa: B008 - frozen
    logger: bool = True,
    dashboard: Dashboard = Dashboard(),  # noqa: B008 - frozen
) -> None:
    """Compare representations by linear CKA: score a submission, or compare models or layers.

    Args:
        team: Team that the submission must be of; by default told by the submission.
        submission: JSON file of a Blue Team (`models`) or Red Team (`differentiating_images`).
        models: Instead of a submission, models of the registry to compare on the whole catalog.
        layers: Layers of the one model given in `models` to compare with each other.
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        catalog: Stimuli catalog; by default the file in HACKATHON_STIMULI_CATALOG, else configs/stimuli_catalog.jsonl.
        output: Folder for score.json (cka.json without a submission) and heatmap.png.
        log_dir: Folder of the log of scores, scores.jsonl; by default that of HACKATHON_LOG_DIR, else `output`.
        max_submission_bytes: Larger submissions are refused.
        save_embeddings: Whether to write the embeddings, too, to embeddings.npz, one array per model or layer.
        extraction: How embeddings are computed.
        logger: Whether to mirror the result in Weights & Biases.
        dashboard: Where it is mirrored.
    """
    start = time.perf_counter()
    if (submission is None) == (models is None):
        msg = "submission: give either a submission to score or `models` to compare, and not both"
        raise UserError(msg)
    remote = submission is not None and modal_enabled(registry, catalog)
    if remote and save_embeddings:
        msg = "save_embeddings: the embeddings stay on Modal; unset HACKATHON_MODAL_ENABLE to score here"
        raise UserError(msg)
    known, stimuli = read_registry(registry_path(registry)), read_catalog(catalog_path(catalog))
    alignment = None
    if submission is None:
        assert models is not None
        alignment = _compare(models, layers, known, stimuli, extraction)
        document = _describe(alignment, known, stimuli)
    elif layers is not None:
        msg = "layers: a submission is scored at the registry's layers; compare layers with `models`"
        raise UserError(msg)
    else:
        checked = read_submission(Path(submission), known, stimuli, team, int(max_submission_bytes))
        if remote:
            document = score_on_modal(Path(submission), checked, known, stimuli, extraction)
        else:
            document, alignment = score(checked, known, stimuli, extraction)
    document["timings"]["total_seconds"] = time.perf_counter() - start
    folder = Path(output)
    embeddings = None
    if alignment is not None and save_embeddings:
        embeddings = dict(zip(alignment.names, alignment.embeddings, strict=True))
    files, log = write_score(document, folder, embeddings), []
    if submission is not None:
        record = {**{key: document[key] for key in LOGGED}, "digests": document["digests"], "output": str(folder)}
        record["time"] = datetime.now(UTC).isoformat(timespec="seconds")
        log = [append_score(log_folder(log_dir, folder), record)]
    print_score(document, [*files, *log])
    if logger:
        _publish(dashboard, document, extraction, files, folder)


def _compare(
    models: list[str], layers: list[str] | None, registry: Registry, catalog: Catalog, options: Extraction
) -> Alignment:
    """Check the lists of models and layers, and align them on the whole catalog."""
    unknown = [name for name in models if name not in registry.entries]
    if unknown:
        msg = f"models: {', '.join(map(repr, unknown))} not in the registry; it has {', '.join(registry.entries)}"
        raise UserError(msg)
    if layers is not None and len(models) != 1:
        msg = f"models: {len(models)} models are given, but layers are compared within one"
        raise UserError(msg)
    for option, values in (("models", models if layers is None else None), ("layers", layers)):
        if values is not None and not 2 <= len(set(values)) == len(values):
            msg = f"{option}: {', '.join(values) or 'none'} given; two or more different ones are compared"
            raise UserError(msg)
    return align(models, catalog.stimuli, registry, options, layers)


def _describe(alignment: Alignment, registry: Registry, catalog: Catalog) -> dict[str, Any]:
    """Give the content of `cka.json`."""
    digests = {"registry": registry.sha256, "catalog": catalog.sha256, "weights": alignment.weights}
    described = alignment.document()
    return {
        "contract_version": CONTRACT_VERSION,
        **described,
        "digests": digests,
        "timings": alignment.timings,
    }


def _publish(
    dashboard: Dashboard, document: Mapping[str, Any], options: Extraction, files: list[Path], folder: Path
) -> None:
    """Mirror the result in the dashboard."""
    pairwise = document["pairwise"]
    matrices = {name: np.array(pairwise[name]) for name in ("biased", "debiased") if pairwise[name] is not None}
    config = {"extraction": asdict(options), "digests": document["digests"], "names": pairwise["names"]}
    publish_score(dashboard, "cka", config, document, pairwise["names"], matrices, files, folder)

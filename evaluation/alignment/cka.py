"""`evaluate.py cka`: alignment of frozen backbones, and the scores of submissions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jsonargparse.typing import PositiveInt
from numpy.typing import NDArray

from contract.documents import catalog_path, read_catalog, read_registry, registry_path
from contract.submissions import DEFAULT_MAX_BYTES, read_submission
from evaluation.alignment.modal_scoring import modal_enabled, score_on_modal
from evaluation.alignment.score_files import print_score, write_score
from evaluation.alignment.score_log import log_folder
from evaluation.alignment.scoring import compare, score
from evaluation.extraction import Extraction
from output.dashboard import Dashboard, check_dashboard, publish_score
from output.errors import UserError
from output.files import output_folder


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
        given = "nothing is" if submission is None else "both are"
        msg = f"submission, models: {given} given; give a submission to score, or models to compare"
        raise UserError(msg)
    folder = output_folder("output", output)
    log = output_folder("log_dir", log_folder(log_dir, folder))
    if logger:
        check_dashboard(dashboard)
    remote = submission is not None and modal_enabled(registry, catalog)
    if remote and save_embeddings:
        msg = "save_embeddings: the embeddings stay on Modal; unset HACKATHON_MODAL_ENABLE to score here"
        raise UserError(msg)
    known, stimuli = read_registry(registry_path(registry)), read_catalog(catalog_path(catalog))
    embeddings: dict[str, NDArray[Any]] | None = None
    if models is not None:
        _refuse({"team": team, "log_dir": log_dir}, "it is for submissions, and models are compared without one")
        document, embeddings = compare(models, layers, known, stimuli, extraction)
    else:
        _refuse({"layers": layers}, "a submission is scored at the registry's layers; compare layers with `models`")
        checked = read_submission(Path(str(submission)), known, stimuli, team, int(max_submission_bytes))
        if remote:
            document = score_on_modal(checked, known, stimuli, extraction)
        else:
            document, embeddings = score(checked, known, stimuli, extraction)
    document["timings"]["total_seconds"] = time.perf_counter() - start
    files = write_score(document, folder, log, embeddings if save_embeddings else None)
    print_score(document, files)
    if logger:
        _publish(dashboard, document, files, folder)


def _refuse(options: Mapping[str, object], reason: str) -> None:
    for name, value in options.items():
        if value is not None:
            msg = f"{name}: {value} is given, but {reason}"
            raise UserError(msg)


def _publish(dashboard: Dashboard, document: Mapping[str, Any], files: Sequence[Path], folder: Path) -> None:
    """Mirror the result."""
    pairwise = document["pairwise"]
    matrices = {name: np.array(pairwise[name]) for name in ("biased", "debiased") if pairwise[name] is not None}
    config = {"extraction": document["extraction"], "digests": document["digests"], "names": pairwise["names"]}
    mirrored = [path for path in files if path.suffix in {".json", ".png"}]
    publish_score(dashboard, "cka", config, document, pairwise["names"], matrices, mirrored, folder)

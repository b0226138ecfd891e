"""Scoring on Modal: the same code runs on a machine that is rented for one call."""

import os
import posixpath
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from headstart.contract.documents import read_catalog, read_registry
from headstart.contract.schema import Track
from headstart.contract.submissions import Submission, check_submission
from headstart.evaluation.alignment.scoring import ScoringSetup, score
from headstart.evaluation.challenge_bundle.wheel import scoring_requirements
from headstart.evaluation.embeddings import Extraction, networks_of
from headstart.output.errors import UserError
from headstart.output.import_paths import ROOT

ENABLE = "HACKATHON_MODAL_ENABLE"
REQUIRED = {"registry": "HACKATHON_MODEL_REGISTRY", "catalog": "HACKATHON_STIMULI_CATALOG"}
APP = "headstart-scoring"
# Modal's volumes keep the cache of embeddings after the call, and the data sets that the operator uploads.
CACHE_VOLUME, CACHE = "headstart-embeddings", "/cache"
DATASETS_VOLUME, DATASETS = "headstart-datasets", "/datasets"
CONTRACT = "/contract"
REGISTRY, CATALOG = f"{CONTRACT}/model_registry.json", f"{CONTRACT}/stimuli_catalog.jsonl"
SOURCES = ("contract", "datamodules", "engines", "evaluation", "metrics", "modules", "output", "store")
# The folder from which a container on Modal imports.
HOME = "/root"
GPU = "L4"
TIMEOUT_SECONDS = 4 * 3600


def modal_enabled(registry: str | None, catalog: str | None) -> bool:
    """Return whether the environment variable HACKATHON_MODAL_ENABLE chooses Modal.

    Args:
        registry: The option `registry`; by default, an environment variable names the registry.
        catalog: The option `catalog`; by default, an environment variable names the catalog.

    Raises:
        UserError: It chooses Modal, but no registry or no catalog is named; or it is neither `true` nor `false`.
    """
    enable = os.environ.get(ENABLE, "")
    if enable.lower() not in {"true", "false", ""}:
        raise UserError(f"{ENABLE}: must be true or false, not {enable!r}")
    if enable.lower() != "true":
        return False

    missing = [
        f"{REQUIRED[option]} (or --{option})"
        for option, value in (("registry", registry), ("catalog", catalog))
        if not (value or os.environ.get(REQUIRED[option]))
    ]
    if missing:
        raise UserError(f"{ENABLE}: scoring on Modal requires {' and '.join(missing)}, which is not set")
    return True


def score_on_modal(submission: Submission, setup: ScoringSetup) -> dict[str, Any]:
    """Score on Modal a submission that was checked on this machine.

    Args:
        submission: The submission.
        setup: The documents, which are copied to Modal with the local weights of the scored models. Data sets are in
            the volume `headstart-datasets`, the cache of embeddings is the volume `headstart-embeddings`.

    Returns:
        The content of `score.json`.

    Raises:
        UserError: Modal's client is not installed or fails, the scoring fails, or it used other documents than these.
    """
    try:
        import modal
    except ImportError as error:
        raise UserError(f"{ENABLE}: Modal's client is not installed; pip install 'headstart[modal]'") from error
    names = submission.models or tuple(setup.registry.entries)
    # Raises an error for a missing file of weights, which could not be copied to Modal.
    networks_of(names, setup.registry, setup.extraction)
    options = asdict(replace(setup.extraction, cache_dir=CACHE))

    try:
        app = modal.App(APP)
        function = app.function(
            image=_image(modal, names, setup),
            gpu=GPU,
            timeout=TIMEOUT_SECONDS,
            volumes={
                CACHE: modal.Volume.from_name(CACHE_VOLUME, create_if_missing=True),
                DATASETS: modal.Volume.from_name(DATASETS_VOLUME, create_if_missing=True),
            },
        )(score_remotely)

        with app.run():
            answer = function.remote(submission.content, submission.team, options)
    except modal.exception.Error as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        hint = "; run `modal setup`" if isinstance(error, modal.exception.AuthError) else ""
        raise UserError(f"{ENABLE}: Modal refuses: {reason}{hint}") from error

    if "refused" in answer:
        raise UserError(f"on Modal: {answer['refused']}")
    document: dict[str, Any] = answer["document"]
    for name, expected in (("registry", setup.registry), ("catalog", setup.catalog), ("submission", submission)):
        if document["digests"][name] != expected.sha256:
            raise UserError(f"on Modal: the {name} differs from the one on this machine; score again")
    return document


def score_remotely(submission: bytes, team: Track, options: dict[str, Any]) -> dict[str, Any]:
    """Score the content of a submission's file; this runs on Modal.

    Args:
        submission: The content.
        team: Its team.
        options: Fields of `Extraction`.

    Returns:
        `document`, the content of `score.json`; or `refused`, the reason why there is none.
    """
    try:
        registry = read_registry(Path(REGISTRY))
        catalog = read_catalog(Path(CATALOG))
        checked = check_submission(submission, "submission", registry, catalog, team)
        document = score(checked, ScoringSetup(registry, catalog, Extraction(**options)))
    except Exception as error:
        if isinstance(error, UserError) or type(error).__name__ == "UserError":
            return {"refused": str(error)}
        raise
    return {"document": document}


def _image(modal: ModuleType, names: Sequence[str], setup: ScoringSetup) -> Any:  # noqa: ANN401 - modal.Image
    """Describe the image: the project's dependencies and code, the documents, and the local weights they name."""
    image = (
        modal.Image.debian_slim(python_version="3.11")
        .pip_install(*(str(entry).partition(";")[0].strip() for entry in scoring_requirements()))
        .env({"HACKATHON_DATASET_ROOT": DATASETS, "HEADSTART_CACHE": CACHE})
        .add_local_file(setup.registry.path, REGISTRY)
        .add_local_file(setup.catalog.path, CATALOG)
        .add_local_file(ROOT / "__init__.py", f"{HOME}/headstart/__init__.py")
        .add_local_file(ROOT / "__init__.pyi", f"{HOME}/headstart/__init__.pyi")
    )

    for source in SOURCES:
        image = image.add_local_dir(ROOT / source, f"{HOME}/headstart/{source}", ignore=["**/__pycache__"])
    if setup.extraction.allow_modules:
        image = image.add_local_python_source(*sorted({name.split(".")[0] for name in setup.extraction.allow_modules}))
    for entry in (setup.registry.entries[name] for name in names):
        file = setup.registry.weights_file(entry.model_name)
        if file is not None and entry.weights is not None and not setup.extraction.random_weights:
            image = image.add_local_file(file, _remote_path(entry.weights))
    return image


def _remote_path(weights: str) -> str:
    """Return the path of a file of weights on Modal: relative to the registry's folder, unless it is absolute."""
    return posixpath.normpath(posixpath.join(CONTRACT, weights.replace("~", HOME, 1)))

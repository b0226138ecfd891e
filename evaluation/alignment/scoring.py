"""Similarity of models on stimuli, and the scores of submissions under the evaluation contract."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.contract.documents import Catalog, Registry
from headstart.contract.schema import CONTRACT_VERSION, Stimulus
from headstart.contract.stimulus_files import locate_stimuli
from headstart.contract.submissions import Submission
from headstart.datamodules.photos.stimuli import Stimuli
from headstart.evaluation.alignment.certainty import cka_and_certainty
from headstart.evaluation.embeddings import HERE, Engines, Extraction, Job, choose_taps, embed_all, networks_of
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES, mean_over_pairs
from headstart.output.errors import UserError, require_different

RowsByModel = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Representations:
    """What models, or layers of one model, make of stimuli.

    Attributes:
        rows: `[stimuli, width]` by name of the model or layer.
        weights: SHA-256 of the weights by model.
        stimuli: Number of stimuli.
        seconds: What reading and computing them took.
        computed: Rows that were computed, rather than read.
    """

    rows: RowsByModel
    weights: dict[str, str]
    stimuli: int
    seconds: float
    computed: int


def represent(
    names: Sequence[str],
    stimuli: Sequence[Stimulus],
    registry: Registry,
    options: Extraction,
    layers: Sequence[str] | None = None,
    engines: Engines = HERE,
) -> Representations:
    """Embed stimuli by models.

    Args:
        names: Models of the registry.
        stimuli: What they are shown.
        registry: The registry.
        options: How embeddings are computed.
        layers: Layers of the one model that is named, to be compared with each other.
        engines: Where the models run.

    Raises:
        UserError: A stimulus cannot be found or decoded, or a model cannot be loaded or run.
    """
    start = time.perf_counter()
    pictures = Stimuli([f"{each.dataset_name}/{each.image_identifier}" for each in stimuli], locate_stimuli(stimuli))
    networks = networks_of(names, registry, options)
    jobs = {
        name: Job(network, choose_taps(registry.entries[name], layers), pictures, options)
        for name, network in networks.items()
    }
    found = embed_all(jobs, engines)
    rows = {name: one.rows for name, one in found.items()}
    if layers is not None:
        (one,) = found.values()
        rows = dict(zip(layers, np.split(one.rows, np.cumsum(one.notes["widths"])[:-1], axis=1), strict=True))
    weights = {name: one.notes["weights"] for name, one in found.items()}
    computed = sum(one.computed for one in found.values())
    return Representations(rows, weights, len(stimuli), time.perf_counter() - start, computed)


@contextmanager
def explain_embedding_errors(names: Sequence[str]) -> Iterator[None]:
    """Turn what mathematics refuses into the user's mistake, which names the model.

    Args:
        names: Names of the models or layers; a message says `embeddings[i]`.
    """
    try:
        yield
    except ValueError as error:
        raise UserError(
            re.sub(r"embeddings\[(\d+)\]", lambda place: f"model {names[int(place[1])]!r}", str(error))
        ) from error


def conditions(registry: Registry, catalog: Catalog, names: Sequence[str], options: Extraction) -> dict[str, Any]:
    """Tell what a result of some models depends on besides what is compared, by its place in the result."""
    networks = networks_of(names, registry, options)
    return {
        "contract_version": CONTRACT_VERSION,
        "extraction": options.score_settings,
        "digests/registry": registry.sha256,
        "digests/catalog": catalog.sha256,
        "digests/networks": {name: network.digest for name, network in networks.items()},
    }


def check_compared(models: Sequence[str], layers: Sequence[str] | None, registry: Registry) -> None:
    """Check what is to be compared, as `compare` takes it.

    Raises:
        UserError: A model is unknown, or there are not two different things to compare.
    """
    registry.require("models", models)
    if layers is not None and len(models) != 1:
        raise UserError(f"models: {len(models)} models are given, but layers are compared within one")
    option, compared = ("models", models) if layers is None else ("layers", layers)
    require_different(option, compared, least=2)


def compare(
    models: Sequence[str],
    layers: Sequence[str] | None,
    registry: Registry,
    catalog: Catalog,
    options: Extraction,
    measure: str = DEFAULT_MEASURE,
    engines: Engines = HERE,
) -> tuple[dict[str, Any], RowsByModel]:
    """Compare models, or layers of one model, on the whole catalog, once `check_compared` has passed them.

    Args:
        models: Models of the registry.
        layers: Layers of the one model, if they are what is compared.
        registry: The registry.
        catalog: The stimuli.
        options: How embeddings are computed.
        measure: Name of the measure of similarity.
        engines: Where the models run.

    Returns:
        The content of `cka.json`, and the embeddings; errors as of `represent`, or that the similarity is undefined.
    """
    found = represent(models, catalog.stimuli, registry, options, layers, engines)
    described = _describe(found, registry, catalog, options, measure)
    if layers is not None:
        described = {"model": models[0], "n_layers": len(layers), **described}
    named = {} if measure == DEFAULT_MEASURE else {"measure": measure}
    return {"contract_version": CONTRACT_VERSION, **named, **described}, found.rows


def score(
    submission: Submission, registry: Registry, catalog: Catalog, options: Extraction, engines: Engines = HERE
) -> tuple[dict[str, Any], RowsByModel]:
    """Score a submission under the evaluation contract.

    Blue Team: the mean pairwise linear CKA of the submitted models on all stimuli of the catalog. Red Team: 1 minus
    the mean pairwise linear CKA of all models of the registry on the submitted stimuli.

    Args:
        submission: A checked submission.
        registry: The models.
        catalog: The stimuli.
        options: How embeddings are computed.
        engines: Where the models run.

    Returns:
        The content of `score.json`, and the embeddings.

    Raises:
        UserError: The registry has one model only; or as `represent`.
    """
    if len(registry.entries) < 2:
        raise UserError(f"registry: {str(registry.path)!r} has one model; CKA compares two or more")
    blue = submission.team == "blue"
    names = submission.models if blue else tuple(registry.entries)
    found = represent(names, catalog.stimuli if blue else submission.stimuli, registry, options, engines=engines)
    described = _describe(found, registry, catalog, options, DEFAULT_MEASURE)
    described["digests"]["submission"] = submission.sha256
    mean, ends = described["mean_cka_biased"], described["ci95"]["mean"]
    if not blue:
        mean, ends = 1 - mean, ends and [1 - ends[1], 1 - ends[0]]
    described["ci95"]["score"] = ends
    header = {"contract_version": submission.contract_version, "team": submission.team, "score": mean}
    return {**header, **described}, found.rows


def _describe(
    found: Representations, registry: Registry, catalog: Catalog, options: Extraction, measure: str
) -> dict[str, Any]:
    """Compute both estimates of the similarity, and describe them as JSON values."""
    start = time.perf_counter()
    certainty: dict[str, Any] = {}
    with explain_embedding_errors(list(found.rows)):
        if measure == DEFAULT_MEASURE:
            biased, debiased, certainty = cka_and_certainty(found.rows.values())
        else:
            biased, debiased = SIMILARITY_MEASURES[measure].pairwise(found.rows.values())
    return {
        "n_models": len(found.weights),
        "n_stimuli": found.stimuli,
        mean_key(measure, "biased"): mean_over_pairs(biased),
        mean_key(measure, "debiased"): None if debiased is None else mean_over_pairs(debiased),
        "pairwise": {
            "names": list(found.rows),
            "biased": biased.tolist(),
            "debiased": None if debiased is None else debiased.tolist(),
        },
        **certainty,
        "extraction": options.score_settings,
        "digests": {"registry": registry.sha256, "catalog": catalog.sha256, "weights": found.weights},
        "timings": {
            "embeddings_seconds": found.seconds,
            "cka_seconds": time.perf_counter() - start,
            "rows_computed": found.computed,
        },
    }


def mean_key(measure: str, estimate: str) -> str:
    """Tell under which key a result holds its mean over pairs; `mean_cka_...` is linear CKA by the contract."""
    return f"mean_cka_{estimate}" if measure == DEFAULT_MEASURE else f"mean_{estimate}"

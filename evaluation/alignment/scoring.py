"""Alignment of models on stimuli, and the scores of submissions under the evaluation contract."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cli.errors import UserError
from evaluation.contract.documents import Catalog, Registry
from evaluation.contract.schema import CONTRACT_VERSION, Stimulus
from evaluation.contract.submissions import Submission
from evaluation.embeddings import StimulusSet, embed
from evaluation.extraction import Extraction
from metrics import pairwise_cka


@dataclass(frozen=True)
class Alignment:
    """How alike the representations of some models, or of some layers of one, are.

    Attributes:
        names: Names of the models or layers.
        embeddings: What each gives the stimuli, `[stimuli, width]`.
        biased: Linear CKA of all pairs, `[models, models]`.
        debiased: The debiased estimate of the same; None where that is undefined, as below 4 stimuli.
        weights: SHA-256 of the weights of each model.
        stimuli: Number of stimuli.
        timings: Seconds by step, and the rows that were computed rather than read.
    """

    names: list[str]
    embeddings: list[NDArray[np.float32]]
    biased: NDArray[np.float64]
    debiased: NDArray[np.float64] | None
    weights: dict[str, str]
    stimuli: int
    timings: dict[str, float]

    def document(self) -> dict[str, Any]:
        """Describe the alignment as JSON values."""
        return {
            "n_models": len(self.names),
            "n_stimuli": self.stimuli,
            "mean_cka_biased": mean_over_pairs(self.biased),
            "mean_cka_debiased": None if self.debiased is None else mean_over_pairs(self.debiased),
            "pairwise": {
                "names": self.names,
                "biased": self.biased.tolist(),
                "debiased": None if self.debiased is None else self.debiased.tolist(),
            },
        }


def mean_over_pairs(matrix: NDArray[np.float64]) -> float:
    """Average a symmetric matrix over all pairs of different models.

    Args:
        matrix: `[models, models]`.

    Returns:
        The mean of the entries above the diagonal.
    """
    return float(matrix[np.triu_indices(len(matrix), 1)].mean())


def align(
    names: Sequence[str],
    stimuli: Sequence[Stimulus],
    registry: Registry,
    options: Extraction,
    layers: Sequence[str] | None = None,
) -> Alignment:
    """Compare models by linear CKA of their embeddings, one model at a time.

    Args:
        names: Models of the registry.
        stimuli: What they are shown.
        registry: The registry.
        options: How embeddings are computed.
        layers: Layers of the one model that is named, to compare them with each other.

    Returns:
        The alignment.

    Raises:
        UserError: A stimulus cannot be found or decoded, or a model cannot be loaded or run.
    """
    start = time.perf_counter()
    located = StimulusSet.locate(stimuli)
    found = [embed(registry.entries[name], located, registry, options, layers) for name in names]
    embedded = time.perf_counter()
    if layers is None:
        rows, labels = [one.rows for one in found], list(names)
    else:
        rows, labels = np.split(found[0].rows, np.cumsum(found[0].widths)[:-1], axis=1), list(layers)
    biased = _compare(rows, labels)
    try:
        debiased = pairwise_cka(rows, debiased=True)
    except ValueError:  # it needs 4 stimuli that are not all but one alike; the score does not
        debiased = None
    timings = {
        "embeddings_seconds": embedded - start,
        "cka_seconds": time.perf_counter() - embedded,
        "rows_computed": sum(one.computed for one in found),
    }
    weights = {name: one.weights for name, one in zip(names, found, strict=True)}
    return Alignment(labels, rows, biased, debiased, weights, len(stimuli), timings)


def _compare(rows: list[NDArray[np.float32]], labels: Sequence[str]) -> NDArray[np.float64]:
    """Compute biased CKA of all pairs; an error names the model."""
    try:
        return pairwise_cka(rows)
    except ValueError as error:
        msg = re.sub(r"embeddings\[(\d+)\]", lambda place: f"model {labels[int(place[1])]!r}", str(error))
        raise UserError(msg) from error


def score(
    submission: Submission, registry: Registry, catalog: Catalog, options: Extraction
) -> tuple[dict[str, Any], Alignment]:
    """Score a submission under the evaluation contract.

    Blue Team: the mean pairwise linear CKA of the submitted models on all stimuli of the catalog. Red Team: 1 minus
    the mean pairwise linear CKA of all models of the registry on the submitted stimuli.

    Args:
        submission: A checked submission.
        registry: The models.
        catalog: The stimuli.
        options: How embeddings are computed.

    Returns:
        The content of `score.json`, and what it was computed from.
    """
    if len(registry.entries) < 2:
        msg = f"registry: {str(registry.path)!r} has one model; CKA compares two or more"
        raise UserError(msg)
    blue = submission.team == "blue"
    names = submission.models if blue else tuple(registry.entries)
    alignment = align(names, catalog.stimuli if blue else submission.stimuli, registry, options)
    described = alignment.document()
    mean = described["mean_cka_biased"]
    document = {
        "contract_version": CONTRACT_VERSION,
        "team": submission.team,
        "score": mean if blue else 1 - mean,
        **described,
        "digests": {
            "registry": registry.sha256,
            "catalog": catalog.sha256,
            "submission": submission.sha256,
            "weights": alignment.weights,
        },
        "timings": alignment.timings,
    }
    return document, alignment

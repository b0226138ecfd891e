"""What a source model makes of a target's photos: features and, from the same pass, its head's probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contract.schema import ModelEntry
from evaluation.embeddings import Extraction, Job, choose_taps, embed
from evaluation.sources.targets import Target
from modules.networks.spec import CLASSIFIERS, NetworkSpec
from modules.networks.taps import SOURCE_HEAD
from output.errors import UserError
from store.row_store import StoredRows


@dataclass(frozen=True)
class SourceFeatures:
    """What a source model makes of a target's photos.

    Attributes:
        features: float32 `[samples, features]`.
        logits: What the source head gives, float32 `[samples, source classes]`; None where there is no head.
        weights: SHA-256 of the loaded weights.
        computed: Rows that were computed now, rather than read.
    """

    features: NDArray[np.float32]
    logits: NDArray[np.float32] | None
    weights: str
    computed: int

    def probabilities(self) -> NDArray[np.float64] | None:
        """Give the source head's probabilities, `[samples, source classes]`: the softmax of its logits."""
        if self.logits is None:
            return None
        exponents = self.logits.astype(np.float64)
        exponents -= exponents.max(1, keepdims=True)
        np.exp(exponents, out=exponents)
        exponents /= exponents.sum(1, keepdims=True)
        return exponents


def source_job(entry: ModelEntry, network: NetworkSpec, target: Target, options: Extraction) -> Job:
    """Say what is to be computed of a target by a source model.

    Args:
        entry: The source model.
        network: The network that it means.
        target: The target.
        options: How features are computed.
    """
    head = [SOURCE_HEAD] if network.library in CLASSIFIERS else []
    return Job(network, [*choose_taps(entry), *head], target.photos, options)


def source_features(
    job: Job, target: Target, stored: StoredRows | None = None, before: int = 0, after: int = 0
) -> SourceFeatures:
    """Give what a source model makes of a target, running its network on those photos only that have no row yet.

    Args:
        job: What is to be computed.
        target: The target.
        stored: The rows, where they are computed already.
        before: Photos that other networks were run on before, of which the progress tells, too.
        after: Photos that others are still to be run on.

    Returns:
        Features and logits of the target's photos, in order.

    Raises:
        UserError: The model cannot be loaded or run, or a photo cannot be decoded; the message
            names the target, or an option of the extraction.
    """
    try:
        table = stored or embed(job.network, job.taps, job.pictures, job.options, before=before, after=after)
    except UserError as error:
        if str(error).startswith("extraction."):
            raise
        raise UserError(f"target {target.name!r}: {error}") from error
    width, *head = table.notes["widths"]
    logits = table.rows[:, width:] if head else None
    return SourceFeatures(table.rows[:, :width], logits, table.notes["weights"], table.computed)

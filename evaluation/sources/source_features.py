"""What a source model makes of a target's photos: features and, from the same pass, its head's probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headstart.contract.schema import ModelEntry
from headstart.evaluation.embeddings import Extraction, Job, choose_taps, embed
from headstart.evaluation.sources.targets import Target
from headstart.metrics.transferability.left_out import divide, divide_groups
from headstart.modules.networks.spec import CLASSIFIERS, NetworkSpec
from headstart.modules.networks.taps import SOURCE_HEAD
from headstart.output.errors import UserError
from headstart.store.row_store import StoredRows


@dataclass(frozen=True)
class SourceFeatures:
    """What a source model makes of a target's photos.

    Attributes:
        features: float32 `[samples, features]`.
        logits: What the source head gives, float32 `[samples, source classes]`; None where there is no head.
        weights: SHA-256 of the loaded weights.
        computed: Rows that were computed now, rather than read.
        labels: Class of each sample, `[samples]`: of a photo, or of a sampled pixel.
        photos: Place of the photo that a pixel is of, `[samples]`; None where samples are photos.
    """

    features: NDArray[np.float32]
    logits: NDArray[np.float32] | None
    weights: str
    computed: int
    labels: NDArray[np.int64]
    photos: NDArray[np.int64] | None = None

    def divide(self, parts: int, seed: int) -> NDArray[np.int64]:
        """Divide the samples into parts that are left out in turn, `[samples]`; the pixels of a photo stay together."""
        if self.photos is None:
            return divide(self.labels, parts, seed)
        return divide_groups(self.photos, self.labels, parts, seed)

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
    if target.photos.maps is not None:
        return Job(replace(network, pixels=True), [], target.photos, options)
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
        table = stored or embed(job, before=before, after=after)
    except UserError as error:
        if str(error).startswith("extraction."):
            raise
        raise UserError(f"target {target.name!r}: {error}") from error
    width, *head = table.notes["widths"]
    logits = table.rows[:, width:] if head else None
    return SourceFeatures(table.rows[:, :width], logits, table.notes["weights"], table.computed, target.photos.labels)

"""What a source model makes of a target's photos: features and, from the same pass, its head's probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contract.schema import ModelEntry
from evaluation.embeddings import Extraction, choose_taps, embed
from evaluation.sources.targets import Target
from modules.networks.spec import CLASSIFIERS, NetworkSpec
from modules.networks.taps import SOURCE_HEAD
from output.errors import UserError


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


def source_features(entry: ModelEntry, network: NetworkSpec, target: Target, options: Extraction) -> SourceFeatures:
    """Give what a source model makes of a target, running its network on those photos only that have no row yet.

    Args:
        entry: The source model.
        network: The network that it means.
        target: The target.
        options: How features are computed.

    Returns:
        Features and logits of the target's photos, in order.

    Raises:
        UserError: The model cannot be loaded or run, or a photo cannot be decoded; the message
            names the target, or an option of the extraction.
    """
    taps = choose_taps(entry)
    if network.library in CLASSIFIERS:
        taps.append(SOURCE_HEAD)
    try:
        table = embed(network, taps, target.photos, options)
    except UserError as error:
        if str(error).startswith("extraction."):
            raise
        raise UserError(f"target {target.name!r}: {error}") from error
    width, *head = table.notes["widths"]
    logits = table.rows[:, width:] if head else None
    return SourceFeatures(table.rows[:, :width], logits, table.notes["weights"], table.computed)

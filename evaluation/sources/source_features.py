"""What a source model makes of a target's photos: features and, from the same pass, its head's probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from contract.schema import ModelEntry
from evaluation.embeddings import load_model
from evaluation.extraction import Extraction
from evaluation.sources.targets import Target
from modules.networks.spec import NetworkSpec
from output.errors import UserError
from store.cache import cache_folder
from store.feature_store import StoreError
from store.row_store import RowStore

if TYPE_CHECKING:
    from datamodules.photos.stimuli import EmbeddingRows

# Libraries whose networks end in the classifier that they were pre-trained with.
CLASSIFIERS = ("torchvision", "timm")


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
        UserError: The model cannot be loaded or run, or a photo cannot be decoded; the message names the target.
    """
    key = {
        "content": "source features",
        "model": entry.model_dump(mode="json", exclude={"model_name", "weights", "notes"}),
        "weights": network.identity,
        "precision": options.precision,
        "photos": target.fingerprint,
    }

    def compute(missing: list[int]) -> EmbeddingRows:
        return _compute(entry, network, target, target.places[missing], options)

    names = [str(place) for place in target.places]
    try:
        table = RowStore(cache_folder(options.cache_dir) / "source_features").get(key, names, compute)
    except StoreError as error:
        msg = f"extraction.cache_dir: {error}; choose another folder"
        raise UserError(msg) from error
    except UserError as error:
        msg = f"target {target.name!r}: {error}"
        raise UserError(msg) from error
    width, *head = table.notes["widths"]
    logits = table.rows[:, width:] if head else None
    return SourceFeatures(table.rows[:, :width], logits, table.notes["weights"], table.computed)


def _compute(
    entry: ModelEntry, network: NetworkSpec, target: Target, places: NDArray[np.int64], options: Extraction
) -> EmbeddingRows:
    """Load the network; from here on torch is needed."""
    import torch

    from datamodules.photos.stimuli import EmbeddingRows
    from modules.networks.layer_embedding import LOGITS, LayerEmbedding, Tap
    from modules.networks.weights import weights_digest

    taps = [Tap(entry.layer, entry.embedding, entry.output_dim)]
    model = load_model(network, options, taps)
    # timm gives a network that was pre-trained without a head none; torchvision's all have one.
    if entry.source in CLASSIFIERS and getattr(model.network, "num_classes", None) != 0:
        taps.append(Tap(LOGITS, None, None))
        model = LayerEmbedding(model.name, model.network, taps, model.preprocessing, model.forward_args)
    # All rows of a table come from the same weights, kind of device and torch; others make it stale.
    notes = {
        "weights": weights_digest(model.network),
        "widths": model.widths,
        "device": model.device.type,
        "torch": torch.__version__,
    }
    return EmbeddingRows(target.whole.subset(places), model, options.precision, options.num_workers, notes)

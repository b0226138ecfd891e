"""Embeddings of registry models on stimuli: read from the store, computed where they are missing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from contract.schema import ModelEntry, Stimulus
from contract.stimulus_files import locate_stimuli
from evaluation.extraction import Extraction
from modules.networks.spec import NetworkSpec, naming_model
from output.errors import UserError
from store.cache import cache_folder
from store.feature_store import StoreError
from store.row_store import RowStore

if TYPE_CHECKING:
    from datamodules.photos.stimuli import EmbeddingRows
    from modules.networks.layer_embedding import LayerEmbedding, Tap


@dataclass(frozen=True)
class StimulusSet:
    """Stimuli with their files and the digests of their content.

    Attributes:
        names: `dataset_name/image_identifier` of each.
        paths: Their files.
        digests: SHA-256 of their bytes, which is what a row is found by: the content is the data set's version.
    """

    names: list[str]
    paths: list[Path]
    digests: list[str]

    @classmethod
    def locate(cls, stimuli: Sequence[Stimulus]) -> StimulusSet:
        """Find the files of stimuli and digest them.

        Args:
            stimuli: The stimuli.

        Returns:
            The same stimuli, in order.

        Raises:
            ContractError: A file is missing or lies outside of its data set's root; all such are listed.
            UserError: A file cannot be read.
        """
        paths = locate_stimuli(stimuli)
        with ThreadPoolExecutor() as pool:
            try:
                digests = list(pool.map(_digest_file, paths))
            except OSError as error:
                msg = f"stimulus {error.filename!r} cannot be read: {error.strerror}"
                raise UserError(msg) from error
        return cls([f"{s.dataset_name}/{s.image_identifier}" for s in stimuli], paths, digests)

    def subset(self, places: Sequence[int]) -> StimulusSet:
        """Select some of the stimuli by their places."""
        parts = ([part[i] for i in places] for part in (self.names, self.paths, self.digests))
        return StimulusSet(*parts)  # type: ignore[arg-type]  # the three lists keep their types


@dataclass(frozen=True)
class Embeddings:
    """Embeddings of one model.

    Attributes:
        rows: float32 `[stimuli, sum of widths]`; one layer beside the other.
        widths: Columns of each layer.
        weights: SHA-256 of the loaded weights.
        computed: Rows that were computed now, rather than read.
    """

    rows: NDArray[np.float32]
    widths: list[int]
    weights: str
    computed: int


def embed(
    entry: ModelEntry,
    network: NetworkSpec,
    stimuli: StimulusSet,
    options: Extraction,
    layers: Sequence[str] | None = None,
) -> Embeddings:
    """Give the embeddings of one model, running its network on those stimuli only that the store has no row for.

    Args:
        entry: The model.
        network: The network that it means.
        stimuli: The stimuli.
        options: How embeddings are computed.
        layers: Layers to take instead of the entry's, their outputs as they are but for an average over positions.

    Returns:
        The embeddings.

    Raises:
        UserError: The model cannot be loaded or run; the message names it.
    """
    own_layer = {"layer", "embedding", "output_dim"} if layers is not None else set()
    key = {
        "content": "embeddings",
        "model": entry.model_dump(mode="json", exclude={"model_name", "weights", "notes", *own_layer}),
        "weights": network.identity,
        "layers": None if layers is None else list(layers),
        "precision": options.precision,
    }

    def compute(places: list[int]) -> EmbeddingRows:
        return _compute(entry, network, stimuli.subset(places), options, layers)

    try:
        table = RowStore(cache_folder(options.cache_dir) / "embeddings").get(key, stimuli.digests, compute)
    except StoreError as error:
        msg = f"extraction.cache_dir: {error}; choose another folder"
        raise UserError(msg) from error
    return Embeddings(table.rows, table.notes["widths"], table.notes["weights"], table.computed)


def _compute(
    entry: ModelEntry,
    network: NetworkSpec,
    stimuli: StimulusSet,
    options: Extraction,
    layers: Sequence[str] | None,
) -> EmbeddingRows:
    """Load the network; from here on torch is needed."""
    import torch

    from datamodules.photos.stimuli import EmbeddingRows, Stimuli
    from modules.networks.layer_embedding import Tap
    from modules.networks.weights import weights_digest

    if layers is None:
        taps = [Tap(entry.layer, entry.embedding, entry.output_dim)]
    else:
        taps = [Tap(layer, None, None) for layer in layers]
    model = load_model(network, options, taps)
    # All rows of a table come from the same weights, kind of device and torch; others make it stale.
    notes = {
        "weights": weights_digest(model.network),
        "widths": model.widths,
        "device": model.device.type,
        "torch": torch.__version__,
    }
    pictures = Stimuli(stimuli.names, stimuli.paths)
    return EmbeddingRows(pictures, model, options.precision, options.num_workers, notes)


def load_model(network: NetworkSpec, options: Extraction, taps: Sequence[Tap]) -> LayerEmbedding:
    """Load the network of a registry entry, ready to embed stimuli.

    Args:
        network: The network.
        options: How embeddings are computed.
        taps: Where embeddings are taken.

    Returns:
        The network with its layers, on its device.

    Raises:
        UserError: It cannot be built, or a layer does not fit the entry.
    """
    import torch

    from modules.networks.build import build
    from modules.networks.layer_embedding import LayerEmbedding

    with naming_model(network.name):
        built, preprocessing = build(network)
    assert preprocessing is not None
    device = options.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return LayerEmbedding(network.name, built, taps, preprocessing, network.forward_args).to(device)


def _digest_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

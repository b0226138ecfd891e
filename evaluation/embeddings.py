"""What registry models make of pictures: rows that are read from the store, and computed where they are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from jsonargparse.typing import NonNegativeInt

from contract.schema import ModelEntry
from datamodules.photos.photo_source import Pictures
from datamodules.row_policy import Means, Policy
from datamodules.rows import rows
from modules.networks.spec import NetworkSpec
from modules.networks.taps import Tap
from output.errors import UserError, naming
from store.cache import cache_folder
from store.row_store import StoredRows
from store.segments import StoreError


@dataclass(frozen=True)
class Extraction:
    """How embeddings are computed.

    Args:
        precision: Arithmetic of the networks; float32 is the contract's.
        device: Where the networks run; `auto` takes a GPU where there is one. Rows that are stored are those of one
            kind of device.
        num_workers: Processes that decode stimuli; null for one per processor that the command may use.
        cache_dir: Folder that embeddings are kept in; by default that of HEADSTART_CACHE, else one in the user's
            cache directory.
        seed: Seed of models without weights; together with a model's name it gives its random weights.
        allow_modules: Python modules that models of source `custom` may come from; none by default.
    """

    precision: Literal["float32", "bfloat16"] = "float32"
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    num_workers: NonNegativeInt | None = None
    cache_dir: str | None = None
    seed: int = 0
    allow_modules: list[str] = field(default_factory=list)


def choose_taps(entry: ModelEntry, layers: Sequence[str] | None = None) -> list[Tap]:
    """Tell where embeddings are taken.

    Args:
        entry: The model, whose own layer is taken by default.
        layers: Layers to take instead, their outputs as they are but for an average over positions.
    """
    if layers is None:
        return [Tap(entry.layer, entry.embedding, entry.output_dim)]
    return [Tap(layer, None, None) for layer in layers]


def embed(network: NetworkSpec, taps: Sequence[Tap], pictures: Pictures, options: Extraction) -> StoredRows:
    """Give the embeddings of one model, running its network on those pictures only that have no row yet.

    Args:
        network: The network.
        taps: Where embeddings are taken.
        pictures: The pictures.
        options: How embeddings are computed.

    Raises:
        UserError: The model cannot be loaded or run, or a picture cannot be decoded.
    """
    title = f"embeddings of {network.name}"
    means = Means(cache_folder(options.cache_dir), title, options.num_workers)
    try:
        with naming("extraction", about="device: "), naming("extraction", about="num_workers: "):
            return rows(network, taps, pictures, Policy(options.precision, device=options.device), means)
    except StoreError as error:
        raise UserError(f"extraction.cache_dir: {error}; choose another folder") from error

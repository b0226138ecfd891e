"""Embeddings of pictures by registry models: read from the store, and computed where they are missing."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from jsonargparse.typing import NonNegativeInt

from headstart.contract.documents import Registry
from headstart.contract.schema import ModelEntry
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.row_request import (
    ComputeSettings,
    NetworkSettings,
    RowRequest,
    require_readable,
)
from headstart.datamodules.rows import find
from headstart.engines.options import EngineOptions
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.taps import Tap
from headstart.output.errors import UserError, prefix_errors
from headstart.store.cache import cache_folder
from headstart.store.feature_table import StoredRows, StoreError


@dataclass(frozen=True)
class Extraction:
    """How embeddings are computed.

    Args:
        precision: Arithmetic of the networks; float32 is the contract's.
        device: Where the networks run; `auto` takes a GPU where there is one. Each kind of device has stored rows of
            its own.
        num_workers: Processes that decode stimuli; null for one per processor that the command may use.
        cache_dir: Folder that embeddings are stored in; by default that of HEADSTART_CACHE, else one in the user's
            cache directory.
        seed: Seed of models without weights; a model's name and the seed determine its random weights.
        allow_modules: Python modules that models of source `custom` may come from; none by default.
        random_weights: Whether all models get random weights, whatever the registry names: a rehearsal of a scoring
            where pre-trained weights cannot be had.
    """

    precision: Literal["float32", "bfloat16"] = "float32"
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    num_workers: NonNegativeInt | None = None
    cache_dir: str | None = None
    seed: int = 0
    allow_modules: list[str] = field(default_factory=list)
    random_weights: bool = False

    @property
    def score_settings(self) -> dict[str, Any]:
        """The settings on which scores depend, for results."""
        random = {"random_weights": True} if self.random_weights else {}
        return {"precision": self.precision, "seed": self.seed, **random}

    @property
    def cache(self) -> Path:
        """The folder that embeddings are stored in, which need not exist."""
        return cache_folder(self.cache_dir)


def networks_of(names: Sequence[str], registry: Registry, options: Extraction) -> dict[str, NetworkSpec]:
    """Return the networks of entries of a registry; arguments and errors as for `Registry.networks`."""
    return registry.networks(names, options.seed, options.allow_modules, options.random_weights)


def choose_taps(entry: ModelEntry, layers: Sequence[str] | None = None) -> list[Tap]:
    """Return the layers of embeddings.

    Args:
        entry: The model, whose own layer is taken by default.
        layers: Layers to use instead; their outputs are averaged over positions, and otherwise unchanged.
    """
    if layers is None:
        return [Tap(entry.layer, entry.embedding, entry.output_dim)]
    return [Tap(layer, None, None) for layer in layers]


@dataclass(frozen=True)
class Job:
    """Embeddings to compute: of which pictures, by which network, at which layers, and how."""

    network: NetworkSpec
    taps: Sequence[Tap]
    pictures: Pictures
    options: Extraction

    @property
    def request(self) -> RowRequest:
        """The rows to look up or compute."""
        assert self.network.preprocessing is not None
        settings = NetworkSettings(self.options.precision, device=self.options.device)
        return RowRequest(self.pictures, self.network.preprocessing, settings, self.network, self.taps)


def embed_all(jobs: Mapping[str, Job], engines: EngineOptions) -> dict[str, StoredRows]:
    """Compute the embeddings of many networks, one after the other here, or pieces of them side by side elsewhere.

    Args:
        jobs: The embeddings to compute, by name.
        engines: Where networks run. Their rows are stored in the cache of this command.

    Returns:
        The rows by name.

    Raises:
        UserError: As for `embed`, when the other jobs are done; or there is no such cluster.
    """
    computed: dict[str, int] = {}
    if not engines.is_serial and jobs:
        options = next(iter(jobs.values())).options
        resources = ComputeSettings(options.cache, "embeddings", options.num_workers, engines=engines)
        # This imports torch, which stored rows do not need.
        from headstart.datamodules.row_tasks import compute_elsewhere

        with prefix_extraction():
            computed = compute_elsewhere({name: job.request for name, job in jobs.items()}, resources)

    rows = {name: embed(job) for name, job in jobs.items()}
    return {name: replace(stored, computed=stored.computed + computed.get(name, 0)) for name, stored in rows.items()}


def embed(job: Job) -> StoredRows:
    """Compute the embeddings of one model, running its network only on pictures without a stored row.

    Raises:
        UserError: The model cannot be loaded or run, or a picture cannot be decoded.
    """
    resources = ComputeSettings(job.options.cache, f"embeddings of {job.network.name}", job.options.num_workers)
    with prefix_extraction():
        return require_readable(job.pictures, find(job.request, resources))


@contextmanager
def prefix_extraction(option: str = "extraction") -> Iterator[None]:
    """Prefix errors about the device, the workers and the cache with the option that has these in it."""
    try:
        with prefix_errors(option, about=("device: ", "num_workers: ", "cache_dir: ")):
            yield
    except StoreError as error:
        raise UserError(f"{option}.cache_dir: {error}") from error

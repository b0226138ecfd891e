"""What registry models make of pictures: rows that are read from the store, and computed where they are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jsonargparse.typing import NonNegativeInt, PositiveInt

from headstart.contract.documents import Registry
from headstart.contract.schema import ModelEntry
from headstart.datamodules.photos.photo_source import Pictures
from headstart.datamodules.row_policy import Means, NotStoredError, Policy
from headstart.datamodules.rows import rows
from headstart.engines.choose import choose_engine, require_one_engine
from headstart.engines.collect import collect
from headstart.engines.ray_cluster import Needs
from headstart.engines.task import Ask, Task
from headstart.modules.networks.spec import CUSTOM, NetworkSpec
from headstart.modules.networks.taps import Tap
from headstart.output.errors import UserError, prefix_errors
from headstart.output.processors import count_processors, processors
from headstart.store.cache import cache_folder
from headstart.store.first_measured import first_measured
from headstart.store.row_store import StoredRows
from headstart.store.segments import StoreError

# Folder in the cache, of what output_dim is where a registry leaves it out.
MEASURED_WIDTHS = "measured_widths"


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
    def told(self) -> dict[str, Any]:
        """What results say of it: what scores depend on."""
        random = {"random_weights": True} if self.random_weights else {}
        return {"precision": self.precision, "seed": self.seed, **random}


def networks_of(names: Sequence[str], registry: Registry, options: Extraction) -> dict[str, NetworkSpec]:
    """Tell which networks entries of a registry mean; arguments and errors as of `Registry.networks`."""
    return registry.networks(names, options.seed, options.allow_modules, options.random_weights)


def choose_taps(entry: ModelEntry, layers: Sequence[str] | None = None) -> list[Tap]:
    """Tell where embeddings are taken.

    Args:
        entry: The model, whose own layer is taken by default.
        layers: Layers to take instead, their outputs as they are but for an average over positions.
    """
    if layers is None:
        return [Tap(entry.layer, entry.embedding, entry.output_dim)]
    return [Tap(layer, None, None) for layer in layers]


@dataclass(frozen=True)
class Engines:
    """Where networks run, but for one after the other in this process.

    Args:
        workers: Processes beside, each of which runs one network at a time.
        ray: Address of a Ray cluster, or `auto` for that of this machine.
    """

    workers: PositiveInt | None = None
    ray: str | None = None


HERE = Engines()


@dataclass(frozen=True)
class Job:
    """What one network is to make of pictures: the arguments of `embed`."""

    network: NetworkSpec
    taps: Sequence[Tap]
    pictures: Pictures
    options: Extraction


def embed_all(jobs: Mapping[str, Job], engines: Engines) -> dict[str, StoredRows]:
    """Give the embeddings of many networks, one after the other here, or side by side elsewhere.

    Args:
        jobs: What is to be computed, by name.
        engines: Where.

    Returns:
        The rows by name. Those of a cluster are kept in the caches of its machines, others in that of this one.

    Raises:
        UserError: As of `embed`, when the other jobs are done; or there is no such cluster.
    """
    require_one_engine(engines.workers, engines.ray)
    stored = find_stored(jobs) if engines.workers else {}
    wanted = {name: job for name, job in jobs.items() if name not in stored}
    if engines != HERE and wanted:
        allowed = max(1, count_processors() // engines.workers) if engines.workers else 1
        needs = Needs(allowed, gpus=float(any(job.options.device == "cuda" for job in jobs.values())))
        here = engines.ray is None
        tasks = [Task(name, f"{__name__}:embed_task", (job, allowed, not here)) for name, job in wanted.items()]
        outcomes = collect(choose_engine(engines.workers, engines.ray, needs), tasks, "embeddings")
        if not here:
            return {name: outcome.required(name) for name, outcome in outcomes.items()}
        for name, outcome in outcomes.items():
            # What failed beside fails here again, and says why; what ended a process might end this one.
            if outcome.kind != "failed":
                outcome.required(name)
    return {
        name: stored[name] if name in stored else embed(job.network, job.taps, job.pictures, job.options)
        for name, job in jobs.items()
    }


def find_stored(jobs: Mapping[str, Job]) -> dict[str, StoredRows]:
    """Give what needs no network to be run."""
    found = {}
    for name, job in jobs.items():
        # What is wrong with a job is said when its turn has come.
        with suppress(NotStoredError, UserError):
            found[name] = embed(job.network, job.taps, job.pictures, job.options, only_stored=True)
    return found


def embed_task(argument: tuple[Job, int, bool], ask: Ask) -> StoredRows | None:
    """Compute embeddings as a task.

    Args:
        argument: The job, the processors that it may use, and whether the rows are to be given, because the command
            does not share this machine's cache.
        ask: Of no use here.
    """
    job, allowed, give = argument
    with processors(allowed):
        found = embed(job.network, job.taps, job.pictures, job.options)
    return replace(found, rows=np.array(found.rows)) if give else None


def embed(
    network: NetworkSpec,
    taps: Sequence[Tap],
    pictures: Pictures,
    options: Extraction,
    only_stored: bool = False,
    before: int = 0,
    after: int = 0,
) -> StoredRows:
    """Give the embeddings of one model, running its network on those pictures only that have no row yet.

    Args:
        network: The network.
        taps: Where embeddings are taken.
        pictures: The pictures.
        options: How embeddings are computed.
        only_stored: Whether no network is to be run.
        before: Pictures that other networks were run on before, of which the progress tells, too.
        after: Pictures that others are still to be run on.

    Raises:
        NotStoredError: It would have to be.
        UserError: The model cannot be loaded or run, or a picture cannot be decoded.
    """
    title = f"embeddings of {network.name}"
    cache = cache_folder(options.cache_dir)
    check = partial(_check_measured_widths, network, taps, cache / MEASURED_WIDTHS)
    means = Means(cache, title, options.num_workers, only_stored, before, after, check)
    try:
        with prefix_errors("extraction", about="device: "), prefix_errors("extraction", about="num_workers: "):
            found = rows(network, taps, pictures, Policy(options.precision, device=options.device), means)
        check(found.notes["widths"])
    except StoreError as error:
        raise UserError(f"extraction.cache_dir: {error}; choose another folder") from error
    return found


def _check_measured_widths(network: NetworkSpec, taps: Sequence[Tap], folder: Path, widths: Sequence[int]) -> None:
    """Hold the embedding of an entry without output_dim to the width that was measured first.

    Weights and a library's version have no part in what is measured: an update that changes a width shall be noticed.
    """
    of_library = {"weights"} if network.library == CUSTOM else {"weights", "code"}
    identity = {name: value for name, value in network.identity.items() if name not in of_library}
    crop = None if network.preprocessing is None else network.preprocessing.crop
    for tap, width in zip(taps, widths, strict=False):
        if tap.strategy is None or tap.width is not None:
            continue
        key = {"network": identity, "crop": crop, "layer": tap.layer, "embedding": tap.strategy}
        first = first_measured(folder, key, width)
        if width != first:
            raise UserError(
                f"model {network.name!r}: layer {tap.layer!r} gives {width} columns, and gave {first} when its "
                f"output_dim, which the registry leaves out, was first measured; name the one that is meant there"
            )

"""Missing rows are computed part by part: in this process, or runs of parts as tasks of an engine."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.datamodules.decoding import explain_decoding_errors
from headstart.datamodules.row_computation import ComputedPart, FrozenNetwork, Report, RowComputer, load
from headstart.datamodules.row_request import ComputeSettings, RowRequest
from headstart.output.errors import UserError
from headstart.output.progress import Progress
from headstart.store.feature_table import TABLES, Digests, FeatureTable, StoreError, pack

log = logging.getLogger(__name__)

# A worker gets about so many runs, of no more parts each: decoding processes stay for a run.
RUNS_PER_WORKER, MOST_PARTS = 4, 8

Indices = NDArray[np.int64]


def compute_here(request: RowRequest, resources: ComputeSettings, digests: Digests, missing: Indices) -> int:
    """Compute missing rows in this process, but for the parts that another process computes.

    Args:
        request: The rows.
        resources: Cache, decoding processes and progress.
        digests: Digests of all pictures.
        missing: Indices of the missing ones.

    Returns:
        The number of rows that were computed.

    Raises:
        UserError: As for `rows.find`.
        StoreError: The table cannot be written.
    """
    with explain_decoding_errors():
        computer = RowComputer(request, resources.workers, load(request, resources.cache))
        parts = request.cut(digests, missing, computer.row_bytes)
        with Progress(resources.title, len(missing), "pictures") as progress:
            return fill(request.table(resources.cache), computer, digests, parts, progress.advance)


def fill(table: FeatureTable, computer: RowComputer, digests: Digests, parts: Iterable[Indices], report: Report) -> int:
    """Compute parts and write them; first those that no other process has taken, then those that it left.

    Args:
        table: The table.
        computer: Computes rows.
        digests: Digests of all pictures.
        parts: Indices of the pictures of each part.
        report: Receives the progress.

    Returns:
        The number of rows that were computed.
    """
    computed, left = 0, list(parts)
    for wait in (False, True):
        counts = [
            table.compute_once(digests[part], partial(computer.compute, part.tolist(), report), wait) for part in left
        ]
        computed += sum(filter(None, counts))
        left = [part for part, count in zip(left, counts, strict=True) if count is None]
        if left and not wait:
            log.warning("another process is computing the same rows in %s; waiting for it", table.folder)
    return computed


@dataclass(frozen=True)
class Run:
    """Parts that one task computes.

    Attributes:
        request: The rows.
        parts: Indices of the pictures of each part.
        key: Key of the table, as the command has it.
        cache: The cache folder; None where the command stores the rows, because the task may not see its disk.
        workers: Processes that decode.
    """

    request: RowRequest
    parts: Sequence[Indices]
    key: Mapping[str, Any]
    cache: Path | None
    workers: int | None

    def __reduce__(self) -> Any:  # noqa: ANN401 - pickle's protocol
        """Leave the pictures of other runs behind on the way to a task."""
        indices, limits = np.concatenate(self.parts), np.cumsum([len(part) for part in self.parts])[:-1]
        parts = np.split(np.arange(len(indices)), limits)
        return Run, (self.request.part(indices), parts, self.key, self.cache, self.workers)


def compute_elsewhere(requests: Mapping[str, RowRequest], resources: ComputeSettings) -> dict[str, int]:
    """Compute the missing rows of several requests as tasks of an engine.

    Args:
        requests: The rows, by names for messages.
        resources: Cache, decoding processes, engine and progress.

    Returns:
        The numbers of rows that were computed, by name.

    Raises:
        UserError: As for `rows.find`, when the tasks of other requests are done.
        StoreError: A table cannot be read or written.
    """
    from headstart.engines.tasks import Needs, Task, run_tasks

    engines, cache = resources.engines, resources.cache.absolute()
    stored_here = engines.ray is not None
    tasks, computed, failed = list[Task](), dict.fromkeys(requests, 0), None
    for name, request in requests.items():
        for number, run in enumerate(_cut_runs(request, resources)):
            tasks.append(Task(f"{name}, run {number}", f"{__name__}:compute_run", run))

    on_gpu = any(request.settings.kind == "cuda" for request in requests.values())
    cpus = max(1, resources.workers or 1) if stored_here else None
    needs = Needs(cpus, gpus=float(on_gpu))
    with closing(run_tasks(tasks, engines, title=resources.title, needs=needs)) as outcomes:
        for outcome in outcomes:
            name = outcome.task.name.rpartition(", run ")[0]
            if outcome.error:
                failed = failed or outcome
            elif stored_here:
                computed[name] += _store(requests[name].table(cache), outcome.value)
            else:
                computed[name] += outcome.value
    if failed is not None:
        failed.require()
    return computed


def _cut_runs(request: RowRequest, resources: ComputeSettings) -> list[Run]:
    """Cut the missing rows of a request into runs of parts."""
    engines, cache = resources.engines, resources.cache.absolute()
    table, workers = request.table(cache), engines.workers
    digests = pack(request.pictures.digests(cache))
    missing = table.find(digests).missing
    if not len(missing):
        return []
    # The command may have no such device, and needs the network only to learn how large its rows are.
    on_cpu = replace(request, settings=replace(request.settings, device="cpu"))
    parts = request.cut(digests, missing, RowComputer(on_cpu, 0, load(on_cpu, cache)).row_bytes)
    most = 1 if workers is None else max(1, min(MOST_PARTS, len(parts) // (RUNS_PER_WORKER * workers)))
    # Each process sees the device that is meant for it.
    request = replace(request, settings=replace(request.settings, device=request.settings.kind))

    stored = None if engines.ray is not None else cache
    some = [parts[first : first + most] for first in range(0, len(parts), most)]
    return [Run(request, group, dict(table.key), stored, resources.workers) for group in some]


# The network of the last run of this process, by the name of its table.
_loaded: dict[str, FrozenNetwork | None] = {}


def compute_run(run: Run) -> int | list[tuple[bytes, ComputedPart]]:
    """Compute the parts of a run, as a task.

    Args:
        run: The parts.

    Returns:
        The number of rows that were computed and stored; or without a cache folder the digests and rows of each part.

    Raises:
        UserError: As for `rows.find`, or this machine has other versions of packages than the command's.
    """
    # A worker of this machine runs the command's own files, though it may have loaded fewer of them.
    table = FeatureTable((run.cache or Path()) / TABLES, run.key)
    name = table.folder.name
    if run.cache is None and run.request.table(Path()).folder.name != name:
        raise UserError(
            "ray: this machine has other versions of torch, torchvision, Pillow or the network than the command; "
            "install the same ones"
        )

    if name not in _loaded:
        _loaded.clear()
        _loaded[name] = load(run.request)
    computer, digests = RowComputer(run.request, run.workers, _loaded[name]), pack(run.request.pictures.digests())

    with explain_decoding_errors():
        if run.cache is None:
            return [(digests[part].tobytes(), computer.compute(part.tolist())) for part in run.parts]
        try:
            return fill(table, computer, digests, run.parts, lambda count: None)
        except StoreError as error:
            raise UserError(f"cache_dir: {error}") from error


def _store(table: FeatureTable, parts: Sequence[tuple[bytes, ComputedPart]]) -> int:
    """Store rows that came with a task; return their number."""
    for names, computed in parts:
        table.compute_once(np.frombuffer(names, "S32"), partial(ComputedPart, *computed))
    return sum(len(computed.rows) for _, computed in parts)

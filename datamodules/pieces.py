"""Missing rows as many tasks: a command cuts them into pieces, which workers or the machines of a cluster compute."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.datamodules.extraction_progress import ExtractionProgress, Step
from headstart.datamodules.piece_task import COMPUTE, Piece, Returned
from headstart.datamodules.row_policy import Resources, device_kind
from headstart.datamodules.row_request import TABLES, RowRequest
from headstart.engines.options import EngineOptions, Needs
from headstart.engines.perform import Outcome, Task
from headstart.engines.tasks import run_tasks
from headstart.store.json_digest import digest_of
from headstart.store.name_index import pack
from headstart.store.row_store import IDLE_ROUNDS, RowStore
from headstart.store.row_table import Filler
from headstart.store.segments import StoreError, explain_os_errors, list_journals

# At least so many pieces for each worker, or for each of the tasks that a cluster may run at once.
PIECES_PER_WORKER, WORKERS_OF_A_CLUSTER = 4, 16
# Beginning of the name of a file that shows machines the command's cache, and seconds after which it is out of use.
MARKER, MARKER_SECONDS = ".run-", 7 * 24 * 3600


def compute_missing(requests: Mapping[str, RowRequest], resources: Resources, engines: EngineOptions) -> dict[str, int]:
    """Compute the missing rows of requests on an engine, until none is missing; other commands share the pieces.

    Args:
        requests: The rows, by names for messages.
        resources: Cache, decoding processes and progress.
        engines: Where pieces are computed.

    Returns:
        Numbers of rows that were computed, by name.

    Raises:
        UserError: As for `rows.find`, when the pieces of other requests are done; or a process was lost several times.
        StoreError: The cache folder cannot be read or written.
    """
    with ExitStack() as opened:
        run, idle = _Run(requests, resources, engines), 0
        opened.enter_context(run.progress)
        while missing := run.find_missing():
            before, count = run.computed.total(), sum(map(len, missing.values()))
            if (before and before + count > run.distinct) or idle == IDLE_ROUNDS:
                run.require_kept(missing)
                raise ValueError("the rows contradict themselves: they came with other notes or another shape")
            run.progress.begin(count)
            run.compute(missing)
            if run.computed.total() == before:
                idle = 0 if run.wait(missing) else idle + 1
    return dict(run.computed)


def needs_of(resources: Resources, engines: EngineOptions, on_gpu: bool) -> Needs:
    """Return what a piece needs of its machine: on a cluster a processor for each process that decodes.

    Args:
        resources: Decoding processes.
        engines: Where pieces are computed.
        on_gpu: Whether networks run on a GPU; each piece then has one of its own.
    """
    cpus = engines.cpus_per_task if engines.workers else max(1, resources.workers or 1)
    return Needs(cpus, float(on_gpu))


class _Run:
    """The pieces of one command, and what became of them.

    Args:
        requests: The rows, by name.
        resources: Cache, decoding processes and progress.
        engines: Where pieces are computed.
    """

    def __init__(self, requests: Mapping[str, RowRequest], resources: Resources, engines: EngineOptions) -> None:
        self.requests, self.resources, self.engines = requests, resources, engines
        on_gpu = any(device_kind(each.policy.device) == "cuda" for each in requests.values())
        self.needs = needs_of(resources, engines, on_gpu)
        self.name = secrets.token_hex(4)
        self.store = RowStore(resources.cache.absolute() / TABLES)
        self.digests = {name: request.pictures.digests(resources.cache) for name, request in requests.items()}
        total = sum(map(len, self.digests.values()))
        self.progress = ExtractionProgress(resources.title, total, resources.before, resources.after)
        self.failed: dict[str, Outcome] = {}
        self.computed = Counter[str]()
        # What stores rows that come with their pieces, by request, open until all pieces have ended.
        self._fillers: dict[str, Filler] = {}
        self._storing = ExitStack()

    @property
    def distinct(self) -> int:
        """Number of different rows that are needed."""
        return sum(len(np.unique(pack(digests))) for digests in self.digests.values())

    def find_missing(self) -> dict[str, NDArray[np.int64]]:
        """Return the indices of missing rows of each request that has some."""
        found = {name: self.store.missing(each.key, self.digests[name]) for name, each in self.requests.items()}
        return {name: indices for name, indices in found.items() if len(indices)}

    def compute(self, missing: Mapping[str, NDArray[np.int64]]) -> None:
        """Compute missing rows."""
        with self._marker() as marker, ExitStack() as self._storing:
            self._fillers.clear()
            try:
                tasks = list(self._tasks(missing, marker))
                with closing(run_tasks(tasks, self.engines, needs=self.needs)) as outcomes:
                    for outcome in outcomes:
                        self.ended(outcome)
                        if self.failed:
                            break
            finally:
                for name in missing:
                    self.store.table(self.requests[name].key).release(self.name)

        for outcome in self.failed.values():
            outcome.require()

    @contextmanager
    def _marker(self) -> Iterator[Path | None]:
        """Hold a file in the cache while pieces run on other machines; remove what killed commands have left."""
        if self.engines.ray is None:
            yield None
            return
        marker = self.store.folder / f"{MARKER}{self.name}"
        with explain_os_errors(self.store.folder, "written"):
            marker.parent.mkdir(parents=True, exist_ok=True)
            for old in marker.parent.glob(f"{MARKER}*"):
                if time.time() - old.stat().st_mtime > MARKER_SECONDS:
                    old.unlink(missing_ok=True)
            marker.touch()
        try:
            yield marker
        finally:
            marker.unlink(missing_ok=True)

    def require_kept(self, missing: Mapping[str, NDArray[np.int64]]) -> None:
        """Check that the rows that this command has written are still there.

        Raises:
            StoreError: They are not.
        """
        for name in missing:
            folder = self.store.table(self.requests[name].key).folder
            if self.computed[name] and not any(f"-{self.name}" in path.name for path in list_journals(folder)):
                reason = "rows vanished after they were written; does something remove the cache?"
                raise StoreError(f"{str(folder)!r} cannot be used ({reason})")

    def _tasks(self, missing: Mapping[str, NDArray[np.int64]], marker: Path | None) -> Iterator[Task]:
        """Yield the pieces."""
        cpus, total = self.needs.cpus or 1, sum(map(len, missing.values()))
        # The last pieces end at about the same time.
        most = -(-total // (PIECES_PER_WORKER * (self.engines.workers or WORKERS_OF_A_CLUSTER)))
        for name, indices in missing.items():
            request, done = self.requests[name], 0
            # Each process sees the device that is meant for it.
            policy = replace(request.policy, device=device_kind(request.policy.device))
            table = digest_of(request.key)
            for piece in request.cut(indices, most):
                part = replace(request.part(piece), policy=policy)
                cache, decoders = self.resources.cache.absolute(), self.resources.workers
                argument = Piece(name, part, table, self.name, cache, marker, cpus, decoders)
                done += len(piece)
                yield Task(f"{name}: pictures up to {done:,} of {len(indices):,}", COMPUTE, argument)

    def wait(self, missing: Mapping[str, NDArray[np.int64]]) -> bool:
        """Wait for rows that another command is computing; return whether there is one."""
        waited = False
        for name, indices in missing.items():
            with self.store.filler(self.requests[name].key) as filler:
                waited |= filler.wait([self.digests[name][index] for index in indices])
        return waited

    def ended(self, outcome: Outcome) -> None:
        """Record the end of a piece, and store rows that came with it."""
        piece: Piece = outcome.task.argument
        if outcome.error:
            self.failed.setdefault(piece.name, outcome)
            return
        self.computed[piece.name] += outcome.value.count
        self.progress.report(Step(outcome.value.count))
        if outcome.value.returned is not None:
            self._store(piece, outcome.value.returned)

    def _store(self, piece: Piece, returned: Returned) -> None:
        """Store rows in one segment for all pieces of a request."""
        if piece.name not in self._fillers:
            filler = self.store.filler(self.requests[piece.name].key)
            self._fillers[piece.name] = self._storing.enter_context(filler)
        self._fillers[piece.name].fill(piece.request.pictures.digests(), returned.part)

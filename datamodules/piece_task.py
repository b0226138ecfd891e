"""A piece of the missing rows, as a task that workers or the machines of a cluster compute into the one store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headstart.datamodules.row_policy import Resources
from headstart.datamodules.row_request import TABLES, RowRequest, explain_decoding_errors
from headstart.output.errors import UserError
from headstart.output.processors import processors
from headstart.store.json_digest import digest_of
from headstart.store.row_store import RowStore
from headstart.store.row_table import Filler
from headstart.store.segments import StoreError

if TYPE_CHECKING:
    from headstart.datamodules.row_computation import FrozenNetwork

# The function of the task.
COMPUTE = f"{__name__}:compute_piece"


@dataclass(frozen=True)
class Piece:
    """Some of the missing rows of a table, which one task computes.

    Attributes:
        name: Name of the request.
        request: The rows, of the pictures of the piece alone.
        table: Digest of the table's key.
        run: Name of the command, in the names of its segments.
        cache: The cache folder.
        marker: A file that is there where the cache is that of the command; None if the machine is the same.
        processors: Processors that the task may use.
        decoders: Processes that decode; None for one per processor.
    """

    name: str
    request: RowRequest
    table: str
    run: str
    cache: Path
    marker: Path | None
    processors: int
    decoders: int | None


@dataclass
class Returned:
    """Rows that a task could not store, because it does not see the command's cache: a source of one chunk.

    Attributes:
        rows: The rows, `[rows, ...]`.
        notes: Notes on all of them.
        remarks: Remarks on single ones, by index.
    """

    rows: NDArray[Any]
    notes: dict[str, Any]
    remarks: dict[int, str]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield the rows."""
        yield self.rows

    def part(self, indices: NDArray[np.int64]) -> Returned:
        """Return some of the rows."""
        remarks = {new: self.remarks[old] for new, old in enumerate(indices.tolist()) if old in self.remarks}
        return Returned(self.rows[indices], self.notes, remarks)


@dataclass
class Computed:
    """What became of a piece.

    Attributes:
        count: Rows that were computed.
        returned: Those that the task could not store.
    """

    count: int
    returned: Returned | None = None


@dataclass
class _Job:
    """The table that this process computes pieces of: its network, loaded once, and its segment."""

    name: tuple[str, str]
    frozen: FrozenNetwork | None
    filler: Filler


_jobs: list[_Job] = []


def compute_piece(piece: Piece) -> Computed:
    """Compute the rows of a piece as a task, and store them where this process sees the command's cache.

    Args:
        piece: The piece.

    Returns:
        The number of rows; the rows themselves where they are not stored.

    Raises:
        UserError: As for `rows.find`, or this machine has other versions of packages than the command's.
    """
    request, resources = piece.request, Resources(piece.cache, "pictures", piece.decoders)

    def source(free: NDArray[np.int64]) -> Any:  # noqa: ANN401 - without importing torch here
        return request.compute(free.tolist(), resources, job.frozen, lambda step: None)

    with processors(piece.processors), explain_decoding_errors(), explain_store_errors():
        job = _find_job(piece)
        if piece.marker is None or piece.marker.exists():
            return Computed(job.filler.fill(request.pictures.digests(), source))
        computed = source(np.arange(len(request.pictures)))
        rows = np.concatenate(list(computed))
        return Computed(len(rows), Returned(rows, computed.notes, dict(computed.remarks)))


def _find_job(piece: Piece) -> _Job:
    """Return the job of a piece; end the last one where that is another."""
    name = piece.table, piece.run
    if not _jobs or _jobs[0].name != name:
        while _jobs:
            _jobs.pop().filler.__exit__(None, None, None)
        key = piece.request.key
        if digest_of(key) != piece.table:
            raise UserError(
                "ray: this machine has other versions of torch, torchvision, Pillow or the network than the command; "
                "install the same ones"
            )
        frozen = piece.request.load(piece.cache)
        _jobs.append(_Job(name, frozen, RowStore(piece.cache / TABLES).filler(key, piece.run)))
    return _jobs[0]


@contextmanager
def explain_store_errors() -> Iterator[None]:
    """Raise errors of the store as the user's, which name the folder."""
    try:
        yield
    except StoreError as error:
        raise UserError(f"cache_dir: {error}; choose another folder") from error

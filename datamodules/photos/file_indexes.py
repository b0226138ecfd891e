"""Indexes of large files that hold many pictures: made once, and kept as long as the file is the same."""

import hashlib
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.datamodules.photos.locations import is_remote, state_of
from headstart.output.errors import UserError, reason_of
from headstart.output.files import replacing
from headstart.output.progress import Progress
from headstart.store.file_digests import SETTLED_NANOSECONDS, time_of_change
from headstart.store.json_digest import digest_of

FOLDER = "file_indexes"
# Name of the array with the state of the file in a kept index.
STATE = "state"

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class FileIndex:
    """What a file holds.

    Attributes:
        location: The file.
        state: Its state when it was read, as `locations.state_of`.
        arrays: What is known about its pictures.
    """

    location: str
    state: str
    arrays: Arrays


def index_files(
    locations: Sequence[str], cache: Path | None, key: Mapping[str, Any], read: Callable[[str], Arrays]
) -> list[FileIndex]:
    """Index files side by side, each once.

    A kept index counts as long as the state of its file is the same. One file that cannot be indexed loses nothing of
    the others.

    Args:
        locations: The files.
        cache: Folder that keeps the indexes; None to read all files.
        key: All besides the file that an index depends on, JSON values.
        read: Reads the index of one file. Digests release the interpreter, so that threads suffice.

    Returns:
        Their indexes, in the order of the files.

    Raises:
        UserError: One of them cannot be read, or is damaged.
    """
    folder = None if cache is None else cache / FOLDER
    with (
        ThreadPoolExecutor() as pool,
        Progress("index of files", len(locations), "files") as progress,
    ):
        indexes = []
        for index in pool.map(lambda location: _index(location, folder, key, read), locations):
            indexes.append(index)
            progress.advance()
    return indexes


def _index(location: str, folder: Path | None, key: Mapping[str, Any], read: Callable[[str], Arrays]) -> FileIndex:
    """Return the kept index of a file, or read it and keep it."""
    began, state = time.time_ns(), state_of(location)
    # A file is found by its absolute path, or its URL.
    whole = location if is_remote(location) else str(Path(location).absolute())
    named = hashlib.sha256(whole.encode(errors="surrogateescape")).hexdigest()
    path = None if folder is None else folder / f"{named[:32]}-{digest_of(key)[:16]}.npz"
    if path is not None and state and (kept := _load(path, state)) is not None:
        return FileIndex(location, state, kept)

    try:
        arrays = read(location)
    except OSError as error:
        raise UserError(f"the file {location} cannot be read ({reason_of(error)}); give one that can be") from error
    # A file that may have changed while it was read, or since within the resolution of its time, is not kept.
    settled = time_of_change(state) < began - SETTLED_NANOSECONDS
    if path is not None and state and settled and state_of(location) == state:
        _save(path, state, arrays)
    return FileIndex(location, state, arrays)


def _load(path: Path, state: str) -> Arrays | None:
    """Return the arrays of a kept index; None if there is none of this state."""
    # Whatever is wrong with the file, the index can be made again.
    with suppress(OSError, ValueError, KeyError, zipfile.BadZipFile), np.load(path, allow_pickle=False) as kept:
        if str(kept[STATE]) == state:
            return {name: kept[name] for name in kept.files if name != STATE}
    return None


def _save(path: Path, state: str, arrays: Arrays) -> None:
    # A cache that cannot be written costs time only.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial, partial.open("wb") as file:
            np.savez(file, **{STATE: np.array(state)}, **arrays)  # type: ignore[arg-type]

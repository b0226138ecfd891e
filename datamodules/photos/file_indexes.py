"""Indexes of large files that hold many pictures: made once, and kept as long as the file is the same."""

import hashlib
import multiprocessing
import os
import signal
import threading
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.datamodules.photos.locations import is_remote, state_of
from headstart.output.errors import UserError, reason_of
from headstart.output.files import replacing
from headstart.output.processors import count_processors
from headstart.output.progress import Progress
from headstart.store.file_digests import is_settled, size_in
from headstart.store.json_digest import digest_of

FOLDER = "file_indexes"
# Names of the arrays with the state of the file in a kept index; and, where an index was not kept because the file may
# have been written again, with the time at which it was first seen in this state.
STATE, SEEN = "state", "seen"
# Bytes of local files from which on processes read them: with small pictures, threads wait for the interpreter.
WORTH_PROCESSES = 2**27

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class FileIndex:
    """The content of a file.

    Attributes:
        location: The file.
        state: Its state when it was read, as `locations.state_of`.
        arrays: Known values of its pictures.
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
        read: Reads the index of one file.

    Returns:
        Their indexes, in the order of the files.

    Raises:
        UserError: One of them cannot be read, or is damaged; or a process was killed.
    """
    folder = None if cache is None else cache / FOLDER
    with Progress("index of files", len(locations), "files") as progress:
        with ThreadPoolExecutor() as threads:
            indexes = list(threads.map(partial(_find, folder, key), locations))
        missing = [place for place, index in enumerate(indexes) if not index.arrays]
        progress.advance(len(indexes) - len(missing))
        unread = [indexes[place] for place in missing]
        with _open_pool(unread) as pool:
            try:
                for place, index in zip(missing, pool.map(partial(_read, folder, key, read), unread), strict=True):
                    indexes[place] = index
                    progress.advance()
            except BrokenProcessPool as error:
                raise UserError("a process that reads the files was killed; try again, with more memory") from error
    return indexes


def _open_pool(files: Sequence[FileIndex]) -> Executor:
    """Return processes where there is much to read, else threads, which also wait for a network side by side."""
    count = min(count_processors(), len(files))
    local = sum(size_in(file.state) for file in files if not is_remote(file.location))
    if count < 2 or local < WORTH_PROCESSES:
        return ThreadPoolExecutor()
    return ProcessPoolExecutor(count, initializer=_follow_command)


def _follow_command() -> None:
    """Leave Ctrl-C to the command, and end when it ends, also if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_command, daemon=True).start()


def _end_with_command() -> None:
    command = multiprocessing.parent_process()
    assert command is not None
    command.join()
    os._exit(1)


def _kept_at(folder: Path, key: Mapping[str, Any], location: str) -> Path:
    """Return where the index of a file is kept."""
    # A file is found by its absolute path, or its URL.
    whole = location if is_remote(location) else str(Path(location).absolute())
    named = hashlib.sha256(whole.encode(errors="surrogateescape")).hexdigest()
    return folder / f"{named[:32]}-{digest_of(key)[:16]}.npz"


def _find(folder: Path | None, key: Mapping[str, Any], location: str) -> FileIndex:
    """Return the kept index of a file, without arrays if there is none of its state."""
    state = state_of(location)
    kept = {} if folder is None or not state else _load(_kept_at(folder, key, location), state)
    return FileIndex(location, state, {} if SEEN in kept else kept)


def _read(folder: Path | None, key: Mapping[str, Any], read: Callable[[str], Arrays], file: FileIndex) -> FileIndex:
    """Read the index of a file, and keep it."""
    location, began, state = file.location, time.time_ns(), state_of(file.location)
    try:
        arrays = read(location)
    except OSError as error:
        raise UserError(f"the file {location} cannot be read ({reason_of(error)}); give one that can be") from error
    # The index of a file that may have changed while it was read, or since within the resolution of its time, is not
    # kept.
    if folder is not None and state and state_of(location) == state:
        path = _kept_at(folder, key, location)
        # A time after now is of a clock that was set back.
        seen = min(began, int(_load(path, state).get(SEEN, began)))
        _save(path, state, arrays if is_settled(state, seen, began) else {SEEN: np.array(seen)})
    return FileIndex(location, state, arrays)


def _load(path: Path, state: str) -> Arrays:
    """Return the arrays of a kept index; none if there is no index of this state."""
    # Whatever is wrong with the file, the index can be made again.
    with suppress(OSError, ValueError, KeyError, zipfile.BadZipFile), np.load(path, allow_pickle=False) as kept:
        if str(kept[STATE]) == state:
            return {name: kept[name] for name in kept.files if name != STATE}
    return {}


def _save(path: Path, state: str, arrays: Arrays) -> None:
    # A cache that cannot be written costs time only.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial, partial.open("wb") as file:
            np.savez(file, **{STATE: np.array(state)}, **arrays)  # type: ignore[arg-type]

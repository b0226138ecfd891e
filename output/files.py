"""Folders and files of results: checked before anything is computed, and each file complete or not there."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from filelock import FileLock, Timeout

from headstart.output.errors import UserError, reason_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
PARTIAL = ".partial"


def output_folder(option: str, chosen: str | Path) -> Path:
    """Check that a folder can be written, without creating it: a command that fails later leaves none behind.

    Args:
        option: What the folder is called in messages.
        chosen: The folder.

    Raises:
        UserError: Nothing is given, or the folder, or the closest one above it that exists, cannot be written.
    """
    if not str(chosen):
        raise UserError(f"{option}: nothing is given; name a folder")
    try:
        path = Path(chosen).expanduser()
        with suppress(FileNotFoundError, NotADirectoryError):
            path.stat()
        there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    except (OSError, RuntimeError, ValueError) as error:
        # No permission to look, a name too long, no home of that user, a NUL.
        raise UserError(f"{option}: {str(chosen)!r} cannot be a folder ({reason_of(error)}); choose another") from error
    try:
        # Permissions alone do not tell of read-only disks, nor of folders that only the system fills.
        with TemporaryFile(dir=there):
            return path
    except OSError as error:
        raise UserError(
            f"{option}: {str(path)!r} cannot be written, because {str(there)!r} cannot; choose another folder"
        ) from error


def output_file(option: str, chosen: str | Path) -> Path:
    """Check that a file can be written, as `output_folder` does the folder that it goes into; a UserError if not."""
    folder, name = output_folder(option, Path(chosen).parent), Path(chosen).name
    if not name or str(chosen).endswith(os.sep) or os.path.isdir(folder / name):  # noqa: PTH112 - of what cannot be, too
        raise UserError(f"{option}: {str(chosen)!r} is no file; name one")
    return folder / name


def digest_file(path: Path) -> str:
    """Digest the bytes of a file.

    Args:
        path: The file.

    Returns:
        Their SHA-256, hexadecimal.

    Raises:
        UserError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); make it readable or move it elsewhere") from error


@contextmanager
def alone_in(option: str, folder: Path) -> Iterator[None]:
    """Keep other processes from a folder; the lock is the process's own, and goes with it.

    Args:
        option: What the folder is called in messages.
        folder: The folder, created where it is missing and removed where nothing was written.

    Raises:
        UserError: Another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise UserError(
            f"{option}: another process writes to {str(folder)!r}; wait for it, or choose another"
        ) from error
    try:
        yield
    finally:
        # Removed while it is held, so that nobody takes a lock that is about to go.
        with suppress(OSError):
            (folder / LOCK).unlink()
        lock.release()
        with suppress(OSError):
            folder.rmdir()


def refuse_other_results(files: Sequence[Path], made_from: Mapping[str, Any], overwrite: bool) -> None:
    """Refuse to replace the results of another configuration; those of the same are written again.

    Args:
        files: The files that are to be written; the first is the JSON document that says what it was made from.
        made_from: What decides the results: JSON values by their places in the document, such as `digests/catalog`;
            None stands for a key that the document does not have, a list also for the keys of an object.
        overwrite: Whether they are to be replaced all the same.

    Raises:
        UserError: One of the files is there, and the document is not or was made from something else.
    """
    there = [path for path in files if path.exists()]
    if overwrite or not there:
        return
    try:
        document = json.loads(files[0].read_text() if files[0].is_file() else "")
        differing = ", ".join(place for place, value in made_from.items() if not _is(_look_up(document, place), value))
    except (OSError, ValueError):
        differing = f"no {files[0].name} says which"
    if differing:
        raise UserError(
            f"output: {str(there[0])!r} holds results of another configuration ({differing}); choose another folder, "
            "or replace them with --overwrite=true"
        )


def _is(found: Any, value: Any) -> bool:  # noqa: ANN401 - JSON
    return bool((list(found) if isinstance(found, dict) and isinstance(value, list) else found) == value)


def _look_up(document: Any, place: str) -> Any:  # noqa: ANN401 - JSON
    for key in place.split("/"):
        document = document.get(key) if isinstance(document, dict) else None
    return document


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside a file, which takes the file's place once it is written.

    After an exception the file is as it was, and nothing else is left; what a kill has left is removed by the next that
    writes the file. Two processes that write the same file do not meet: one of them has the last word.
    """
    remove_partial(path)
    partial = _beside(path)
    with _held(partial):
        try:
            yield partial
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def restored_on_failure(paths: Sequence[Path]) -> Iterator[None]:
    """Put files back that are replaced within, and remove new ones, where an exception ends it."""
    before: dict[Path, Path] = {}
    try:
        for path in paths:
            if path.exists():
                before[path] = _beside(path)
                _link(path, before[path])
        yield
    except BaseException:
        for path in paths:
            if path in before and before[path].exists():
                before[path].replace(path)
            elif path not in before:
                path.unlink(missing_ok=True)
        raise
    finally:
        for kept in before.values():
            kept.unlink(missing_ok=True)


def remove_partial(path: Path) -> None:
    """Remove the temporary files of a file whose writers were killed; those that are being written stay."""
    for left in path.parent.glob(f"{glob.escape(path.name)}.*{PARTIAL}"):
        with suppress(OSError), left.open("rb") as file:
            if _lock(file.fileno()):
                left.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}{PARTIAL}")


@contextmanager
def _held(partial: Path) -> Iterator[None]:
    """Create a file and hold a lock on it, by which others see that it is being written; a kill lets it go."""
    with partial.open("xb") as file:
        _lock(file.fileno())
        yield


def _lock(descriptor: int) -> bool:
    """Take the lock of an open file, unless another process has it; without locks every file is taken as held."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _link(path: Path, other: Path) -> None:
    """Give a file a second name, or a copy where the disk has no such thing."""
    try:
        os.link(path, other)
    except OSError:
        shutil.copy2(path, other)


def write_together(folder: Path, writers: Mapping[str, Callable[[Path], object]]) -> list[Path]:
    """Write files that appear together, the last one last: none of them where one fails.

    Args:
        folder: Their folder, created where it is missing.
        writers: What writes a file to the path that it is given, by file name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        # The stack is left from its end.
        partial = {name: stack.enter_context(replacing(folder / name)) for name in reversed(list(writers))}
        for name, write in writers.items():
            write(partial[name])
    return [folder / name for name in writers]


def write_text(path: Path, text: str, overwrite: bool) -> None:
    """Write the one file of an option `output`; a UserError where it holds something else and is to be kept."""
    # A pipe would have whoever reads it wait.
    if path.exists() and not overwrite and not (path.is_file() and path.read_bytes() == text.encode()):
        raise UserError(
            f"output: {str(path)!r} holds something else; choose another file, or replace it with --overwrite=true"
        )
    write_texts(path.parent, {path.name: text})


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts by file name, as `write_together` does; a UserError where the folder cannot be written."""
    writers = {name: partial(Path.write_text, data=text, encoding="utf-8", newline="") for name, text in texts.items()}
    try:
        return write_together(folder, writers)
    except OSError as error:
        raise UserError(
            f"output: {str(folder)!r} cannot be written ({reason_of(error)}); choose another folder"
        ) from error


def rewrite_text(path: Path, text: str) -> None:
    """Write a file of the user's anew: where a symbolic link leads to, and with the permissions that it has."""

    def write(temporary: Path) -> None:
        temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        temporary.write_text(text, encoding="utf-8", newline="")

    try:
        target = path.resolve(strict=True)
        write_together(target.parent, {target.name: write})
    except OSError as error:
        raise UserError(f"{str(path)!r} cannot be written ({reason_of(error)})") from error

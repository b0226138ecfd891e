"""Folders and files of results: checked before anything is computed, and each file complete or absent."""

import glob
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

from filelock import FileLock, Timeout

from headstart.output.errors import UserError, explain_write_errors, reason_of
from headstart.output.progress import track

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
PARTIAL = ".partial"
# Larger files are digested in pieces, which costs small ones twice the time.
READ_AT_ONCE = 2**24


def output_folder(option: str, chosen: str | Path) -> Path:
    """Check that a folder can be written, without creating it: a command that fails later leaves no empty folder.

    Args:
        option: Name of the folder in messages.
        chosen: The folder.

    Raises:
        UserError: The name is empty, or the folder, or the closest existing one above it, cannot be written.
    """
    if not str(chosen):
        raise UserError(f"{option}: nothing is given; name a folder")
    try:
        path = Path(chosen).expanduser()
        with suppress(FileNotFoundError, NotADirectoryError):
            path.stat()
        existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    except (OSError, RuntimeError, ValueError) as error:
        # Permission is missing, the name is too long or has a NUL, or the user has no home.
        raise UserError(f"{option}: {str(chosen)!r} cannot be a folder ({reason_of(error)}); choose another") from error
    try:
        # Permissions alone do not show that a disk is read-only, or that only the system fills a folder.
        with TemporaryFile(dir=existing):
            return path
    except OSError as error:
        raise UserError(
            f"{option}: {str(path)!r} cannot be written, because {str(existing)!r} cannot; choose another folder"
        ) from error


def output_file(option: str, chosen: str | Path) -> Path:
    """Check that a file can be written, and return its path; a UserError if its folder cannot be written."""
    folder, name = output_folder(option, Path(chosen).parent), Path(chosen).name
    if not name or str(chosen).endswith(os.sep) or os.path.isdir(folder / name):  # noqa: PTH112 - Path.is_dir raises for impossible names
        raise UserError(f"{option}: {str(chosen)!r} is no file; name one")
    return folder / name


def digest_file(path: str | Path) -> str:
    """Return the SHA-256 of a file, hexadecimal; a UserError if it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a Path for each of many files takes long
            if os.fstat(file.fileno()).st_size > READ_AT_ONCE:
                return hashlib.file_digest(file, "sha256").hexdigest()
            return hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); make it readable or move it elsewhere") from error


@contextmanager
def alone_in(option: str, folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder, until this process leaves the context or ends.

    Args:
        option: Name of the folder in messages.
        folder: The folder, created if it is missing and removed if nothing was written.

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
        # Removed while the lock is held, so that nobody acquires a lock of a removed file.
        with suppress(OSError):
            (folder / LOCK).unlink()
        lock.release()
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside a file, which replaces the file when the context ends.

    After an exception the file is unchanged, and the temporary file is removed. The next writer of the file removes
    that of a killed process. Two processes may write the same file: the last one wins.
    """
    remove_partial(path)
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    with _locked(partial):
        try:
            yield partial
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def remove_partial(path: Path) -> None:
    """Remove the temporary files of killed writers of a file, but not those that are being written."""
    for left in path.parent.glob(f"{glob.escape(path.name)}.*{PARTIAL}"):
        with suppress(OSError), left.open("rb") as file:
            if _lock(file.fileno()):
                left.unlink(missing_ok=True)


@contextmanager
def _locked(partial: Path) -> Iterator[None]:
    """Create a file and hold a lock on it, which shows others that it is being written; a kill releases it."""
    with partial.open("xb") as file:
        _lock(file.fileno())
        yield


def _lock(descriptor: int) -> bool:
    """Return whether the lock of an open file could be acquired; never on systems without such locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def write_together(folder: Path, writers: Mapping[str, Callable[[Path], object]]) -> list[Path]:
    """Write files that appear together, the last one last; none of them if one fails.

    Args:
        folder: Their folder, created if it is missing.
        writers: Functions that write a file to a path, by file name.

    Returns:
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        # The stack closes the contexts in reverse order.
        partial = {name: stack.enter_context(replacing(folder / name)) for name in reversed(list(writers))}
        # Figures of many points take seconds each.
        for name, write in track([*writers.items()], "results", "files"):
            write(partial[name])
    return [folder / name for name in writers]


def encode(text: str) -> bytes:
    """Return a text in UTF-8; bytes of file names that are none are escaped as in JSON."""
    return text.encode(errors="backslashreplace")


def write_text(path: Path, text: str, overwrite: bool) -> None:
    """Write the one file of an option `output`; a UserError if it has other content and `overwrite` is not set."""
    # Reading a pipe would block.
    if path.exists() and not overwrite and not (path.is_file() and path.read_bytes() == encode(text)):
        raise UserError(
            f"output: {str(path)!r} holds something else; choose another file, or replace it with --overwrite=true"
        )
    write_texts(path.parent, {path.name: text})


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts by file name, as `write_together` does; a UserError if the folder cannot be written."""
    writers = {name: partial(Path.write_bytes, data=encode(text)) for name, text in texts.items()}
    with explain_write_errors(f"output: {str(folder)!r}", "choose another folder"):
        return write_together(folder, writers)

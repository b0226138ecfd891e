"""Fetching data sets: complete or not at all, and once however many processes ask."""

from __future__ import annotations

import logging
import shutil
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pooch
from filelock import FileLock, Timeout

from output.errors import UserError

log = logging.getLogger(__name__)

SILENCE_LIMIT = 60.0
"""Seconds without a byte after which a transfer counts as lost."""
CHUNK = 2**16


def fetch_archive(url: str, folder: Path, sha256: str | None = None) -> None:
    """Download a zip archive and unpack it, unless the folder holds something already.

    Args:
        url: Address of the archive.
        folder: Folder that is to hold what the archive holds.
        sha256: SHA-256 of the archive, hexadecimal; by default it is not checked.

    Raises:
        UserError: The archive cannot be fetched, is another one, or is damaged.
    """

    def fill(partial: Path) -> Path:
        archive, unpacked = partial / "archive.zip", partial / "unpacked"
        _download(url, archive, sha256)
        _unpack(archive, unpacked, url)
        return unpacked

    fetch_once(folder, fill)


def fetch_once(folder: Path, fill: Callable[[Path], Path]) -> None:
    """Create a folder, unless it holds something already.

    The content is put together in a temporary folder beside it and renamed when it is complete, so that an
    interruption leaves nothing that passes for the data set. Processes that ask at once wait for the first.

    Args:
        folder: The folder to create.
        fill: Puts the content together in the temporary folder that it is given, and returns the folder in
            there that is to become the final one.

    Raises:
        UserError: The folder cannot be written.
    """
    folder = folder.resolve()
    # A complete data set may lie where this process can neither write nor lock.
    if _holds_something(folder):
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.with_name(f".{folder.name}.lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            log.warning("another process is fetching %s; waiting for it", folder)
            lock.acquire()
        try:
            if not _holds_something(folder):
                _fill_and_rename(folder, fill)
        finally:
            lock.release()
    except OSError as error:
        raise UserError(f"root: {folder} cannot be written ({error}); choose another folder") from error


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _fill_and_rename(folder: Path, fill: Callable[[Path], Path]) -> None:
    partial = folder.with_name(f".{folder.name}.partial")
    # A process that was killed could not remove its own.
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        content = fill(partial)
        if folder.is_dir():
            folder.rmdir()
        content.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _download(url: str, path: Path, sha256: str | None) -> None:
    downloader = pooch.HTTPDownloader(progressbar=True, chunk_size=CHUNK, timeout=SILENCE_LIMIT)
    known = None if sha256 is None else f"sha256:{sha256}"
    try:
        pooch.retrieve(url, known, path.name, path.parent, downloader=downloader)
    except OSError as error:
        raise UserError(f"download: {url} cannot be fetched ({_first(error)}); set root to a local copy") from error
    except ValueError as error:
        raise UserError(
            f"sha256: {url} holds another file than the one with {sha256}; give its own, or set root to a local copy"
        ) from error


def _first(error: BaseException) -> BaseException:
    """Give the error that others were raised over, which says what happened in the fewest words."""
    while error.__context__ is not None:
        error = error.__context__
    return error


def _unpack(archive: Path, folder: Path, url: str) -> None:
    try:
        with zipfile.ZipFile(archive) as file:
            # Every member is read to its end, where its checksum is compared, and none is written elsewhere or as a
            # link, whatever it is called.
            file.extractall(folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise UserError(
            f"url: {url} is not an intact zip archive ({error}); fetch it again, or set root to a local copy"
        ) from error

"""Fetching data sets: complete or not at all, and once however many processes ask."""

from __future__ import annotations

import logging
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path, PureWindowsPath
from urllib.request import Request, urlopen

from filelock import FileLock, Timeout
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from output.errors import UserError

log = logging.getLogger(__name__)

SILENCE_LIMIT = 60.0
"""Seconds without a byte after which a transfer counts as lost."""


def fetch_archive(url: str, folder: Path) -> None:
    """Download a zip archive and unpack it, unless the folder holds something already.

    Args:
        url: Address of the archive.
        folder: Folder that is to hold what the archive holds.

    Raises:
        UserError: The archive cannot be fetched, is damaged, or has a member that would be
            written outside the folder.
    """

    def fill(partial: Path) -> Path:
        archive, unpacked = partial / "archive.zip", partial / "unpacked"
        _download(url, archive)
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
        msg = f"root: {folder} cannot be written ({error}); choose another folder"
        raise UserError(msg) from error


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


def _download(url: str, path: Path) -> None:
    # torch.hub's and torchvision's functions notice neither a transfer that ends early nor one that stalls.
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    progress = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
    try:
        request = Request(url, headers={"User-Agent": "headstart"})
        with urlopen(request, timeout=SILENCE_LIMIT) as response, path.open("wb") as file, progress:
            stated = response.headers.get("Content-Length")
            total = None if stated is None else int(stated)
            shutil.copyfileobj(progress.wrap_file(response, total, description=url.rpartition("/")[2]), file)
        received = path.stat().st_size
        if total is not None and received != total:
            msg = f"the transfer ended after {received} of {total} bytes"
            raise ConnectionError(msg)
    except (OSError, HTTPException, ValueError) as error:
        msg = f"download: {url} cannot be fetched ({error}); set root to a local copy"
        raise UserError(msg) from error


def _unpack(archive: Path, folder: Path, url: str) -> None:
    folder.mkdir()
    try:
        with zipfile.ZipFile(archive) as file:
            for member in file.infolist():
                _check_member(member, url)
            # Every member is read to its end, where its checksum is compared.
            file.extractall(folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        msg = f"url: {url} is not an intact zip archive ({error}); fetch it again, or set root to a local copy"
        raise UserError(msg) from error


def _check_member(member: zipfile.ZipInfo, url: str) -> None:
    # The Windows flavour understands both slashes and drive letters, on every system.
    path = PureWindowsPath(member.filename)
    is_link = stat.S_ISLNK(member.external_attr >> 16)
    if path.anchor or ".." in path.parts or is_link:
        kind = "is a link" if is_link else "leaves the folder"
        msg = (
            f"url: {url} is refused because its member {member.filename!r} {kind}; "
            "name another archive, or set root to a local copy"
        )
        raise UserError(msg)

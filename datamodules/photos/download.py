"""How data sets are fetched: complete or not at all, and once for all processes."""

import logging
import shutil
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path

import pooch
from filelock import FileLock, Timeout

from headstart.datamodules.photos.photo_source import SplitSource
from headstart.output.errors import UserError, chain_of, explain_write_errors, reason_of
from headstart.store.cache import cache_folder

log = logging.getLogger(__name__)

SILENCE_LIMIT = 60.0
"""Seconds without a byte after which a transfer counts as lost."""
CHUNK = 2**16


class FetchedSource(SplitSource):
    """A data set that can be fetched, into a folder that the user names or into the cache folder.

    Args:
        root: The folder that the user names, if any.
        inside: Path in the cache folder that is used otherwise.
        download: Whether the data set is fetched where its folder is missing or empty.

    Attributes:
        root: The folder that holds the data set.
    """

    def __init__(self, root: str | None, inside: str, download: bool) -> None:
        self.inside = inside if root is None else None
        self.root = cache_folder() / inside if root is None else Path(root).expanduser()
        self.download = download

    def prepare(self, cache: Path | None = None) -> None:
        """Fetch the data set, if that is asked for and its folder is missing or empty.

        Args:
            cache: The cache folder, for a source without a root of its own.
        """
        if self.inside is not None and cache is not None:
            self.root = cache / self.inside
        if self.download:
            fetch_once(self.root, self.fill)

    @abstractmethod
    def fill(self, partial: Path) -> Path:
        """Fetch the data set into a temporary folder, and return the folder in there that holds it."""


def fetch_once(folder: Path, fill: Callable[[Path], Path]) -> None:
    """Create a folder, unless it holds something already.

    The content is fetched into a temporary folder beside it. This is renamed when it is complete, so that an
    interruption leaves no incomplete data set. Processes that fetch at the same time wait for the first.

    Args:
        folder: The folder to create.
        fill: Fetches the content into a temporary folder, its argument, and returns the folder in there that becomes
            the final one.

    Raises:
        UserError: The folder cannot be written.
    """
    folder = folder.resolve()
    # A complete data set may lie where this process can neither write nor lock.
    if _holds_something(folder):
        return
    with explain_write_errors(f"root: {folder}", "choose another folder"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.with_name(f".{folder.name}.lock"))
        try:
            locked = lock.acquire(timeout=0)
        except Timeout:
            log.warning("another process is fetching %s; waiting for it", folder)
            locked = lock.acquire()
        with locked:
            if not _holds_something(folder):
                _fill_and_rename(folder, fill)


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


def download(url: str, path: Path, sha256: str | None, otherwise: str = "set root to a local copy") -> None:
    """Download a file.

    Args:
        url: Its address.
        path: Where it is written.
        sha256: Its SHA-256, hexadecimal; None for any.
        otherwise: What the user can do instead, for messages.

    Raises:
        UserError: The file cannot be fetched, or is another one.
    """
    downloader = pooch.HTTPDownloader(progressbar=True, chunk_size=CHUNK, timeout=SILENCE_LIMIT)
    known_hash = None if sha256 is None else f"sha256:{sha256}"
    try:
        pooch.retrieve(url, known_hash, path.name, path.parent, downloader=downloader)
    except OSError as error:
        # The first error of the chain has the shortest message.
        *_, first = chain_of(error)
        raise UserError(f"download: {url} cannot be fetched ({reason_of(first)}); {otherwise}") from error
    except ValueError as error:
        raise UserError(
            f"download: {url} holds another file than the one with the SHA-256 {sha256}; {otherwise}"
        ) from error

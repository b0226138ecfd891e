"""Files by their location: a local path, or a URL such as `s3://bucket/photo.jpg`, which fsspec reads."""

import glob
import hashlib
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO

from headstart.datamodules.photos.remote_errors import patiently
from headstart.output.errors import UserError
from headstart.output.files import digest_file
from headstart.store.file_digests import Access, digest_files
from headstart.store.file_digests import state_of as local_state

# Bytes of a stream that are fetched at once.
BLOCK = 8 * 2**20
# Requests that are sent side by side.
REQUESTS = 32
# What file systems call the version of a file, and the time of its last change.
VERSIONS = ("ETag", "etag", "generation", "Content-MD5", "md5Hash", "Digest", "blob_id")
TIMES = ("LastModified", "last_modified", "Last-Modified", "updated", "mtime", "modified", "created")

_URL = re.compile(r"([a-z][a-z0-9+.-]+)://")
_BRACES = re.compile(r"\{([^{}]*(?:,|\.\.)[^{}]*)\}")


def is_remote(location: str | Path) -> bool:
    """Whether a location is a URL; another one is a local path."""
    return _URL.match(str(location)) is not None


def expand(pattern: str) -> list[str]:
    """List the locations that match a pattern.

    Args:
        pattern: A location with ranges `{0000..0099}` and choices `{a,b}` in braces, which need not exist. The
            wildcards `*`, `?`, `[...]` and `**` match files and not folders. In a URL of https, `?` begins a query.

    Returns:
        The locations, numbers in the order of their values.

    Raises:
        UserError: No file matches the wildcards, the folder cannot be listed, or a package is missing.
    """
    locations: list[str] = []
    for each in _without_braces(pattern):
        is_pattern = glob.has_magic(each.replace("?", "") if each.startswith("http") else each)
        if not is_pattern or (not is_remote(each) and os.path.exists(each)):  # noqa: PTH110 - a name may be impossible
            locations.append(each)
            continue
        found = _glob(each) if is_remote(each) else _glob_local(each)
        if not found:
            raise UserError(f"{each}: no file matches it; give other wildcards")
        locations += found
    return sorted(locations, key=in_order)


def in_order(name: str) -> tuple[list[str | int], str]:
    """Return the key by which names are sorted: numbers in the order of their values."""
    # The pattern's group makes every second part a number, so that parts at the same position have the same type.
    parts = re.split("([0-9]+)", name)
    return [int(part) if position % 2 else part for position, part in enumerate(parts)], name


def state_of(location: str) -> str:
    """Return a text that changes whenever a file does; empty if it is missing, or if its file system has none."""
    if not is_remote(location):
        return local_state(location)
    try:
        return state_in(_info(location))
    except OSError:
        return ""


def state_in(info: Mapping[str, Any]) -> str:
    """Return the state of a remote file from what its file system says about it; see `state_of`.

    Args:
        info: Entries of fsspec's `info`.
    """
    version = next((str(info[name]) for name in VERSIONS if info.get(name)), "")
    changed = next((_nanoseconds(info[name]) for name in TIMES if info.get(name)), 0)
    if not version and not changed:
        return ""
    # Size and time of the last change are the third and the fourth word, as of a local file; a version needs no time.
    return f"remote {''.join(version.split()) or '-'} {info.get('size') or 0} {0 if version else changed}"


def size_of(location: str) -> int:
    """Return the number of bytes of a file.

    Raises:
        OSError: It cannot be read, or its server does not say; with an `errno`.
    """
    if not is_remote(location):
        return os.stat(location).st_size  # noqa: PTH116 - a location is a text
    size = _info(location).get("size")
    return len(read_bytes(location)) if size is None else int(size)


def read_bytes(location: str, start: int = 0, end: int | None = None) -> bytes:
    """Read a file or a part of it; a failing network gets several attempts.

    Args:
        location: The file.
        start: Index of the first byte.
        end: Index after the last byte; by default the file's end.

    Returns:
        The bytes; fewer if the file ends before.

    Raises:
        OSError: It cannot be read; with an `errno`, because that says nothing about its content.
        UserError: A package is missing.
    """
    if not is_remote(location):
        with open(location, "rb") as file:  # noqa: PTH123 - a location is a text
            if start:
                file.seek(start)
            return file.read(-1 if end is None else max(0, end - start))

    files, path = _file_system(location)
    if start == 0 and end is None:
        return bytes(patiently(location, partial(files.cat_file, path)))
    if end is None:
        end = size_of(location)
    if end <= start:
        return b""
    content = patiently(location, partial(files.cat_file, path, start=start, end=end))
    # A server that ignores ranges sends the whole file, which may be shorter than the range.
    is_whole = len(content) > end - start or (
        start and len(content) < end - start and len(content) == size_of(location)
    )
    return bytes(content[start:end] if is_whole else content)


def open_stream(location: str) -> BinaryIO:
    """Open a file to read it once from its beginning; of a remote one a few megabytes are fetched at a time.

    Raises:
        OSError: It cannot be read; with an `errno`, also while it is read.
        UserError: A package is missing.
    """
    if not is_remote(location):
        return open(location, "rb")  # noqa: PTH123 - a location is a text
    info = _info(location)
    if info.get("size") is None or info.get("partial") is False:
        # Its server sends files as a whole only.
        return io.BytesIO(read_bytes(location))
    return io.BufferedReader(RemoteFile(location, int(info["size"])), BLOCK)


def join(folder: str, name: str) -> str:
    """Return the location of a name relative to a folder; a name that is a URL, or absolute, stays as it is."""
    if is_remote(name):
        return name
    return f"{folder.rstrip('/')}/{name}" if is_remote(folder) else os.path.join(folder, name)  # noqa: PTH118 - as above


def _digest(location: str) -> str:
    """Return the SHA-256 of a file, hexadecimal; a UserError if it cannot be read."""
    if not is_remote(location):
        return digest_file(location)
    try:
        return hashlib.sha256(read_bytes(location)).hexdigest()
    except OSError as error:
        raise UserError(f"{location} cannot be read ({error.strerror})") from error


def digest_locations(locations: Sequence[str], cache: Path | None, listed: Mapping[str, str]) -> list[str]:
    """Digest the bytes of files, as `file_digests.digest_files`; many are requested at the same time."""
    threads = REQUESTS if any(map(is_remote, locations)) else None
    return digest_files(locations, cache, Access(state_of, _digest, threads), listed)


def list_below(folder: str) -> dict[str, str]:
    """List all files in a remote folder and in its folders, with one request where its file system has that.

    Args:
        folder: The folder's URL.

    Returns:
        States by name, relative to the folder; empty where the listing does not tell, see `state_of`.

    Raises:
        OSError: It cannot be listed; with an `errno`.
        UserError: A package is missing.
    """
    files, path = _file_system(folder)
    path = path.rstrip("/")
    found = patiently(folder, partial(files.find, path, detail=True))
    return {name.removeprefix(path).lstrip("/"): state_in(info) for name, info in found.items()}


class RemoteFile(io.RawIOBase):
    """A remote file whose parts are fetched when they are read, in any order.

    Args:
        location: Its URL.
        size: Its bytes.
    """

    def __init__(self, location: str, size: int) -> None:
        self._location = location
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte, and return its index."""
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any buffer of bytes
        """Fill a buffer with the bytes that follow, and return how many they are."""
        content = read_bytes(self._location, self._position, min(self._position + len(buffer), self._size))
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)


def _file_system(location: str) -> tuple[Any, str]:
    """Return fsspec's file system of a URL, and the path in it; one instance serves all threads of a process."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise UserError(f"{location}: fsspec is not installed; pip install 'headstart[remote]'") from error
    try:
        # A listing that is kept would hide later changes.
        return url_to_fs(location, use_listings_cache=False)  # type: ignore[no-any-return]
    except ImportError as error:
        raise UserError(f"{location}: a package is missing ({error}); pip install 'headstart[remote]'") from error
    except ValueError as error:
        raise UserError(f"{location} is no location ({error}); give a path, or a URL such as s3://, gs://") from error
    except Exception as error:
        # Credentials may be read here already.
        return patiently(location, partial(_raise, error))


def _raise(error: Exception) -> tuple[Any, str]:
    raise error


def _info(location: str) -> dict[str, Any]:
    files, path = _file_system(location)
    files.invalidate_cache(path)
    return dict(patiently(location, partial(files.info, path)))


def _glob(pattern: str) -> list[str]:
    files, path = _file_system(pattern)
    try:
        found = patiently(pattern, partial(files.glob, path, detail=True))
    except OSError as error:
        raise UserError(f"{pattern} cannot be listed ({error.strerror})") from error
    return [files.unstrip_protocol(name) for name, info in found.items() if info["type"] != "directory"]


def _glob_local(pattern: str) -> list[str]:
    found = glob.glob(pattern, recursive=True)  # noqa: PTH207 - keeps `./`
    return [path for path in found if not os.path.isdir(path)]  # noqa: PTH112 - a Path for each of many takes long


def _without_braces(pattern: str) -> Iterator[str]:
    """Yield a pattern with each combination of the choices in its braces."""
    if not is_remote(pattern) and os.path.exists(pattern):  # noqa: PTH110 - a name may be impossible
        return iter([pattern])
    # Every second part is the inside of braces.
    parts = _BRACES.split(pattern)
    choices = [_choices(part) if position % 2 else [part] for position, part in enumerate(parts)]
    return map("".join, product(*choices))


def _choices(inside: str) -> list[str]:
    ends = re.fullmatch(r"(\d+)\.\.(\d+)", inside)
    if ends is None:
        return inside.split(",")
    first, last = ends.groups()
    # As in a shell, all numbers have the digits of the longer one if one begins with 0.
    digits = max(len(first), len(last)) if "0" in (first[0], last[0]) and len(first) == len(last) else 0
    step = 1 if int(first) <= int(last) else -1
    return [f"{number:0{digits}}" for number in range(int(first), int(last) + step, step)]


def _nanoseconds(time: datetime | str | float) -> int:
    """Return the time of a change, which file systems write in different ways, in nanoseconds since 1970."""
    if isinstance(time, str):
        with suppress(ValueError):
            return _nanoseconds(datetime.fromisoformat(time))
        time = parsedate_to_datetime(time)
    return int((time.timestamp() if isinstance(time, datetime) else float(time)) * 1e9)


def _forget_threads() -> None:
    """Make a forked process start a loop of its own: threads do not survive a fork, locks they held stay closed."""
    if asyn := sys.modules.get("fsspec.asyn"):
        asyn.reset_lock()


os.register_at_fork(after_in_child=_forget_threads)

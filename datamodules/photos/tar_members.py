"""The members of a tar archive, by one pass through its bytes.

Archives of many small files are read many times as fast as by `tarfile`. No member is an object, and the headers in a
megabyte are checked together. Formats: ustar, pax (IEEE Std 1003.1-2017, "pax", "ustar Interchange Format" and "pax
Extended Header") and GNU's.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np

BLOCK = 512
# Bytes that are read at once, and most of a member that are asked for at once.
PIECE, LARGE = 2**20, 2**26
# Types of headers: files; links, devices, folders and pipes, which have no content; names for the next member.
FILES, WITHOUT_CONTENT = b"0\x007", b"123456"
LONG_NAME, EXTENDED, SPARSE = b"LxS"
# Where a sparse file's header, and each block of its map, state whether a block of its map follows.
MORE_IN_HEADER, MORE_IN_BLOCK = 482, 504
# Members that do not hold a file as it is: what they are, and how they are packed otherwise.
PARTIAL = {
    ord("1"): ("a hard link, without bytes of its own", "with tar --hard-dereference"),
    ord("2"): ("a symbolic link, without bytes of its own", "with tar --dereference"),
    SPARSE: ("a sparse file, whose zeros are left out", "without --sparse"),
}
# Beginning of what extended headers say about a sparse file.
SPARSE_KEY = b"GNU.sparse."
# Digits of numbers that are no size of a file, at least.
LONGEST = 19
EMPTY = bytes(BLOCK)
# Where a header states the sum of its bytes in six octal digits, and what each of them counts.
SUM, DIGITS, VALUES = slice(148, 156), slice(148, 154), 8 ** np.arange(6)[::-1]


class CutOffError(Exception):
    """An archive ends too early."""


class DamagedError(Exception):
    """There is no header of a member where one should be."""


class PartialError(Exception):
    """A wanted member does not hold a file as it is.

    Args:
        name: Its name.
        kind: Type of its header, one of `PARTIAL`.
    """

    def __init__(self, name: str, kind: int) -> None:
        super().__init__(name)
        self.name = name
        self.what, self.packed_with = PARTIAL[kind]


class TrailingError(Exception):
    """Something other than zeros follows the end mark."""


class Members(NamedTuple):
    """Files that follow each other in an archive.

    Attributes:
        names: Their names.
        starts: Index of the first byte of each in the archive.
        sizes: Number of bytes of each.
        buffer: Bytes of the archive with their contents; none for a large file that is not wanted.
        first: Index of the buffer's first byte in the archive.
    """

    names: Sequence[str]
    starts: Sequence[int]
    sizes: Sequence[int]
    buffer: bytes
    first: int


def read_members(stream: BinaryIO, wants: Callable[[str], bool]) -> Iterator[Members]:
    """Read the files in a tar archive in their order.

    Args:
        stream: The archive, at its beginning; it is only read forwards.
        wants: Whether the content of a member is wanted, by its name.

    Yields:
        Files that were read together.

    Raises:
        CutOffError: The archive ends before its end mark, a block of zeros.
        DamagedError: Neither a header nor the end mark follows a member.
        PartialError: A link or a sparse file is wanted.
        TrailingError: Other data follow the end mark, such as another archive.
        OSError: It cannot be read.
    """
    first, buffer, needed = 0, b"", BLOCK
    # Name and size that headers before a member give it.
    given: dict[bytes, bytes] = {}
    while True:
        content = _read(stream, max(PIECE, needed - len(buffer)))
        buffer = buffer + content if buffer else content
        walk = _Walk(buffer, first, given)
        if walk.names:
            yield Members(walk.names, walk.starts, walk.sizes, buffer, first)
        if walk.is_damaged:
            raise DamagedError
        for name, kind in walk.partial:
            if wants(name):
                raise PartialError(name, kind)
        if walk.is_at_end:
            _require_end(buffer[walk.position :], stream)
            return

        buffer, first, needed = buffer[walk.position :], first + walk.position, walk.needed
        if not content:
            raise _explain_end(first, buffer)
        if walk.next is not None and needed > PIECE and not wants(walk.next):
            _pass_over(stream, needed - len(buffer))
            yield Members([walk.next], [first + BLOCK], [walk.size], b"", 0)
            buffer, first, needed = b"", first + needed, BLOCK
            given.clear()


class _Walk:
    """A walk from header to header, as far as members are whole.

    Args:
        buffer: Bytes of the archive from a header on.
        first: Index of the first of them in the archive.
        given: Name and size that headers before give the first member; afterwards, those for the next member.

    Attributes:
        names: Names of the files.
        starts: Index of the first byte of each in the archive.
        sizes: Number of bytes of each.
        partial: Names and types of links and sparse files.
        position: Index in the buffer where the walk ended.
        is_at_end: Whether that is at the end mark.
        is_damaged: Whether there is no header.
        needed: Bytes of the next member, with its header, which the buffer does not hold.
        next: Its name if it is a file.
        size: Its size.
    """

    def __init__(self, buffer: bytes, first: int, given: dict[bytes, bytes]) -> None:
        self.names: list[str] = []
        self.starts: list[int] = []
        self.sizes: list[int] = []
        self.partial: list[tuple[str, int]] = []
        self.position, self.is_at_end, self.is_damaged = 0, False, False
        self.needed, self.size = BLOCK, 0
        self.next: str | None = None
        headers = self._go(buffer, first, given)

        bad = _find_bad(buffer, headers)
        if bad is not None:
            self.is_damaged = True
            known = bisect_left(self.starts, first + bad + BLOCK)
            del self.names[known:], self.starts[known:], self.sizes[known:]

    def _go(self, buffer: bytes, first: int, given: dict[bytes, bytes]) -> list[int]:
        """Walk, and return the indices of the headers, which are still to be checked."""
        position, end = 0, len(buffer)
        headers: list[int] = []
        names: list[bytes] = []
        while position + BLOCK <= end:
            if not buffer[position] and buffer[position : position + BLOCK] == EMPTY:
                self.is_at_end = True
                break
            headers.append(position)

            kind, start = buffer[position + 156], position + BLOCK
            try:
                size = int(buffer[position + 124 : position + 136].rstrip(b"\0"), 8)
            except ValueError:
                size = _number(buffer[position + 124 : position + 136])
            if given:
                size = int(given.get(b"size", size))
            if size < 0:
                self.is_damaged = True
                break

            if kind == SPARSE:
                start = _pass_map(buffer, position)
            elif given and b"sparse" in given and kind in FILES:
                kind = SPARSE

            name = None
            if kind in FILES or kind in PARTIAL:
                name = buffer[position : position + 100].partition(b"\0")[0]
                # GNU's format has other fields where that of POSIX has the beginning of a long name.
                if buffer[position + 345] and buffer[position + 257 : position + 263] == b"ustar\0":
                    name = buffer[position + 345 : position + 500].partition(b"\0")[0] + b"/" + name
                if given:
                    name = given.get(b"path", name)

            following = start if kind in WITHOUT_CONTENT else start + size + -size % BLOCK
            if following > end:
                self.needed, self.size = following - position, size
                self.next = _decode([name])[0] if name is not None and kind in FILES else None
                break
            position = following

            if name is not None and kind in PARTIAL:
                self.partial.append((_decode([name])[0], kind))
            elif name is not None:
                names.append(name)
                self.starts.append(first + start)
                self.sizes.append(size)

            if kind == LONG_NAME:
                given[b"path"] = buffer[start:following].partition(b"\0")[0]
            elif kind == EXTENDED:
                records = _records(buffer[start : start + size])
                if records is None:
                    self.is_damaged = True
                    break
                given.update(records)
            elif given:
                given.clear()

        self.names = _decode(names)
        self.position = position
        return headers


def _pass_map(buffer: bytes, header: int) -> int:
    """Return where the content of GNU's sparse file begins: behind the blocks that go on with the map in its header."""
    start, more = header + BLOCK, header + MORE_IN_HEADER
    while more < len(buffer) and buffer[more]:
        start, more = start + BLOCK, start + MORE_IN_BLOCK
    return start


def _find_bad(buffer: bytes, headers: Sequence[int]) -> int | None:
    """Return the index of the first header whose bytes do not have the sum that it states; None if all have."""
    blocks = np.frombuffer(buffer, np.uint8, len(buffer) // BLOCK * BLOCK).reshape(-1, BLOCK)
    chosen = blocks[np.array(headers, np.int64) // BLOCK]
    # The sum counts its own field as eight blanks.
    sums = chosen.sum(1, dtype=np.int64) - chosen[:, SUM].sum(1, dtype=np.int64) + 8 * ord(" ")
    digits = chosen[:, DIGITS].astype(np.int64) - ord("0")
    doubtful = (digits @ VALUES != sums) | (digits < 0).any(1) | (digits > 7).any(1)
    for index in np.flatnonzero(doubtful).tolist():
        # In some old archives bytes are signed.
        signed = int(sums[index]) - 256 * int((np.delete(chosen[index], SUM) > 127).sum())
        if _number(chosen[index, SUM].tobytes()) not in (int(sums[index]), signed):
            return headers[index]
    return None


def _explain_end(first: int, rest: bytes) -> Exception:
    """Return the error of an archive that ends at an index, with an incomplete rest."""
    if not rest:
        return CutOffError("there is no end mark")
    if len(rest) >= BLOCK:
        return CutOffError("in a member")
    return CutOffError("in a header") if first else DamagedError()


def _number(field: bytes) -> int:
    """Return the number in a field of a header: octal digits, or GNU's binary form; -1 if it is none."""
    if field[0] in (0o200, 0o377):
        return int.from_bytes(field[1:])
    try:
        return int(field.partition(b"\0")[0] or b"0", 8)
    except ValueError:
        return -1


def _decode(names: Sequence[bytes]) -> list[str]:
    """Return names as texts; bytes that are no UTF-8 become surrogates, as in names of files."""
    return b"\0".join(names).decode(errors="surrogateescape").split("\0") if names else []


def _records(text: bytes) -> dict[bytes, bytes] | None:
    """Return what an extended header says about its member: lines of a length, a key and a value.

    Args:
        text: The lines.

    Returns:
        Its `path`, `size` and whether it is `sparse`; None if the lines are damaged.
    """
    records: dict[bytes, bytes] = {}
    # Times, which most such headers hold alone, do not matter.
    while b" path=" in text or b" size=" in text or SPARSE_KEY in text:
        digits, _, _ = text.partition(b" ")
        length = _decimal(digits)
        if length <= len(digits) or text[length - 1 : length] != b"\n":
            return None
        key, _, value = text[len(digits) + 1 : length - 1].partition(b"=")
        if key == b"size" and _decimal(value) < 0:
            return None
        if key.startswith(SPARSE_KEY):
            records[b"sparse"] = b""
        # The name in the header is that of a folder which tar makes up.
        key = b"path" if key == SPARSE_KEY + b"name" else key
        records[key] = value.partition(b"\0")[0]
        text = text[length:]
    return records


def _decimal(digits: bytes) -> int:
    """Return the number in a text of decimal digits; -1 if it is none, or larger than any file."""
    return int(digits) if digits.isdigit() and len(digits) < LONGEST else -1


def _read(stream: BinaryIO, length: int) -> bytes:
    """Read at most so many bytes; what a damaged header states may be more than fits into memory."""
    parts = []
    while length and (part := stream.read(min(length, LARGE))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _require_end(rest: bytes, stream: BinaryIO) -> None:
    """Raise an error unless all that follows is zeros, to which archives are padded."""
    while rest:
        if rest.count(0) < len(rest):
            raise TrailingError
        rest = stream.read(PIECE)


def _pass_over(stream: BinaryIO, length: int) -> None:
    while length:
        content = stream.read(min(length, PIECE))
        if not content:
            raise CutOffError("in a member")
        length -= len(content)

"""The members of a tar archive, by one pass through its bytes.

Archives of many small files are read several times as fast as by `tarfile`, which makes an object of each member.
Formats: ustar, pax (IEEE Std 1003.1-2017, "pax", "ustar Interchange Format" and "pax Extended Header") and GNU's.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

BLOCK = 512
# Bytes of a member that is passed over which are read at once.
PIECE = 2**20
# Types of headers: files; links, devices, folders and pipes, which have no content; names for the next member.
FILES, WITHOUT_CONTENT = (b"0", b"\0", b"7"), (b"1", b"2", b"3", b"4", b"5", b"6")
LONG_NAME, EXTENDED = b"L", b"x"
EMPTY = bytes(BLOCK)


class CutOffError(Exception):
    """An archive ends too early."""


class DamagedError(Exception):
    """There is no header of a member where one should be."""


class Member(NamedTuple):
    """A file in an archive.

    Attributes:
        name: Its name.
        start: Index of its first byte in the archive.
        content: Its bytes, followed by NUL up to a full block; None where they are not wanted.
        size: Its number of bytes.
    """

    name: str
    start: int
    content: memoryview | None
    size: int


def read_members(stream: BinaryIO, wants: Callable[[str], bool]) -> Iterator[Member]:
    """Read the files in a tar archive in their order.

    Args:
        stream: The archive, at its beginning; it is only read forwards.
        wants: Whether the content of a file is wanted, by its name.

    Yields:
        Each file.

    Raises:
        CutOffError: The archive ends before its end mark, a block of zeros.
        DamagedError: What follows a member is neither a header nor the end mark.
        OSError: It cannot be read.
    """
    position = 0
    # Name and size that headers before a member give it.
    given: dict[bytes, bytes] = {}
    while (header := stream.read(BLOCK)) != EMPTY:
        if not header or (len(header) < BLOCK and position):
            raise CutOffError("in a header" if header else "there is no end mark")
        if len(header) < BLOCK or not _is_header(header):
            raise DamagedError
        kind = header[156:157]
        size = int(given[b"size"]) if b"size" in given else _number(header[124:136])
        start = position + BLOCK
        length = 0 if kind in WITHOUT_CONTENT else -(-size // BLOCK) * BLOCK
        position = start + length

        if kind == LONG_NAME:
            given[b"path"] = _read(stream, length).partition(b"\0")[0]
        elif kind == EXTENDED:
            given |= _records(_read(stream, length)[:size])
        else:
            name = (given.get(b"path") or _name(header)).decode(errors="surrogateescape")
            given = {}
            if kind in FILES and wants(name):
                yield Member(name, start, memoryview(_read(stream, length))[:size], size)
            else:
                _pass_over(stream, length)
                if kind in FILES:
                    yield Member(name, start, None, size)


def _is_header(block: bytes) -> bool:
    """Whether the sum of a header's bytes is that which it states; in some old archives bytes are signed."""
    field = block[148:156]
    # The sum counts its own field as eight blanks, 256. Adler-32 adds bytes fast, modulo 65,521.
    rest = _number(field) - 256 + sum(field)
    if ((zlib.adler32(block) & 0xFFFF) - 1 - rest) % 65521 == 0:
        return True
    return sum(block) - 256 * sum(byte > 127 for byte in block) == rest


def _number(field: bytes) -> int:
    """Return the number in a field of a header: octal digits, or GNU's binary form; -1 if it is none."""
    if field[0] in (0o200, 0o377):
        return int.from_bytes(field[1:])
    try:
        return int(field.partition(b"\0")[0] or b"0", 8)
    except ValueError:
        return -1


def _name(header: bytes) -> bytes:
    name = header[:100].partition(b"\0")[0]
    # GNU's format has other fields where that of POSIX has the beginning of a long name.
    if header[345] and header[257:263] == b"ustar\0":
        return header[345:500].partition(b"\0")[0] + b"/" + name
    return name


def _records(text: bytes) -> dict[bytes, bytes]:
    """Return what an extended header says about its member: lines of a length, a key and a value."""
    records: dict[bytes, bytes] = {}
    # Times, which most such headers hold alone, do not matter.
    while b" path=" in text or b" size=" in text:
        digits, _, _ = text.partition(b" ")
        length = int(digits)
        key, _, value = text[len(digits) + 1 : length - 1].partition(b"=")
        records[key] = value
        text = text[length:]
    return records


def _read(stream: BinaryIO, length: int) -> bytes:
    content = stream.read(length)
    if len(content) < length:
        raise CutOffError("in a member")
    return content


def _pass_over(stream: BinaryIO, length: int) -> None:
    while length:
        length -= len(_read(stream, min(length, PIECE)))

"""Sealed files: an authentication code shows that this user wrote them, before anything in them is interpreted.

A sealed file is the content that the caller has written, followed by a head, the length of the head, the digest of the
content, the code and a mark. The code is that of the file's name, the content's digest and the head, so that neither a
changed file nor a renamed one is accepted.
"""

import hashlib
import hmac
import os
from pathlib import Path
from typing import BinaryIO

MARK = b"headstart sealed file 1\n"
# Sizes in bytes: the length of the head, the content's digest and the code.
LENGTH = 8
DIGEST = 32
END = LENGTH + 2 * DIGEST + len(MARK)


class SealError(ValueError):
    """A file was not sealed with the key under this name, or has changed since."""


def seal(file: Path, name: str, head: bytes, key: bytes) -> None:
    """Seal a file.

    Args:
        file: The file, with its whole content.
        name: The name by which it will be read.
        head: Bytes that are also read without the content.
        key: The key.
    """
    with file.open("r+b") as opened:
        digest = hashlib.file_digest(opened, "sha256").digest()
        opened.seek(0, os.SEEK_END)
        opened.write(head + len(head).to_bytes(LENGTH) + digest + _code(key, name, digest, head) + MARK)


def read_head(file: Path, key: bytes) -> bytes:
    """Return the head of a sealed file; the content is not read.

    Args:
        file: The file.
        key: The key.

    Raises:
        SealError: It was not sealed with this key under this name, or its head has changed since.
    """
    with file.open("rb") as opened:
        return _read_end(opened, file.name, key)[0]


def read_content(file: Path, key: bytes) -> tuple[bytes, bytes]:
    """Return the head and the content of a sealed file.

    Args:
        file: The file.
        key: The key.

    Raises:
        SealError: It was not sealed with this key under this name, or has changed since.
    """
    with file.open("rb") as opened:
        head, digest, size = _read_end(opened, file.name, key)
        opened.seek(0)
        content = opened.read(size)
    # The bytes that are checked are those that are returned: nobody can change them in between.
    if not hmac.compare_digest(hashlib.sha256(content).digest(), digest):
        raise SealError("its content has changed since it was written")
    return head, content


def _read_end(opened: BinaryIO, name: str, key: bytes) -> tuple[bytes, bytes, int]:
    """Return the head, the content's digest and the content's size."""
    size = opened.seek(0, os.SEEK_END) - END
    opened.seek(max(size, 0))
    end = opened.read(END)
    length = int.from_bytes(end[:LENGTH])
    if size < length or not end.endswith(MARK):
        raise SealError("it is cut short, or has no authentication code")

    opened.seek(size - length)
    head, digest, code = opened.read(length), end[LENGTH : LENGTH + DIGEST], end[LENGTH + DIGEST : -len(MARK)]
    if not hmac.compare_digest(code, _code(key, name, digest, head)):
        raise SealError("its authentication code is not that of this user")
    return head, digest, size - length


def _code(key: bytes, name: str, digest: bytes, head: bytes) -> bytes:
    return hmac.digest(key, MARK + os.fsencode(name) + b"\0" + digest + head, "sha256")

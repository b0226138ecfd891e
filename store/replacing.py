"""Files that are complete or not there."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to, which takes the file's place once that is done.

    After an exception the file is as it was, and nothing else is left. Two processes that write the same file do not
    meet: one of them has the last word.

    Args:
        path: The file.

    Yields:
        A path in the same folder.
    """
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)

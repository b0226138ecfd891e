"""Memory that does not suffice, told in one line that says what for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from headstart.output.errors import UserError

# What torch says of a processor, of a GPU, and of the libraries that it calls there.
OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory|ALLOC_FAILED", re.IGNORECASE)
WANTED = re.compile(r"tried to allocate ([\d.]+ \w+)", re.IGNORECASE)


@contextmanager
def explain_memory_errors(batch: str, remedy: str) -> Iterator[None]:
    """Say what memory does not suffice for, where torch says that it has none left.

    Args:
        batch: What is computed within, as a message begins: what is wrong by its name, and the batch.
        remedy: What to lower.

    Raises:
        UserError: Memory does not suffice. Other errors pass as they are.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and not OUT_OF_MEMORY.search(str(error)):
            raise
        wanted = WANTED.search(str(error))
        found = f" ({wanted[1]} more are wanted)" if wanted else ""
        raise UserError(f"{batch} does not fit into memory{found}; {remedy}") from error

"""Errors of insufficient memory, explained in one line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from headstart.output.errors import UserError, is_out_of_memory

REQUESTED = re.compile(r"tried to allocate ([\d.]+ \w+)", re.IGNORECASE)


@contextmanager
def explain_memory_errors(batch: str, remedy: str) -> Iterator[None]:
    """Explain an error of insufficient memory that is raised within.

    Args:
        batch: The beginning of the message: the option, and the batch that is computed.
        remedy: Advice which option to lower.

    Raises:
        UserError: Memory does not suffice. Other errors pass as they are.
    """
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error) or isinstance(error, UserError):
            raise
        requested = REQUESTED.search(str(error))
        amount = f" ({requested[1]} more are needed)" if requested else ""
        raise UserError(f"{batch} does not fit into memory{amount}; {remedy}") from error

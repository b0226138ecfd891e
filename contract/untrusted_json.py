"""JSON from strangers: limited in size and depth, unambiguous, with numbers and text that any program can hold."""

import json
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from headstart.contract.problems import ContractError, Problem, join_pointer, short_json, shorten
from headstart.output.errors import reason_of

MAX_DEPTH = 32
# The longest float that Python or JavaScript writes has 25 characters.
LONGEST_NUMBER = 100

_SURROGATE = re.compile("[\ud800-\udfff]")


def read_limited(path: Path, limit: int, document: str) -> bytes:
    """Read a regular file; arguments and errors as of `read_lines`."""
    return b"".join(read_lines(path, limit, document))


def read_lines(path: Path, limit: int, document: str, option: str | None = None) -> Iterator[bytes]:
    """Read the lines of a regular file one by one, never more than one byte beyond a limit.

    Args:
        path: The file.
        limit: The limit in bytes.
        document: Name of the document, for the message.
        option: The option that raises the limit, for the message.

    Yields:
        The lines with their ends; only the last may lack its line feed.

    Raises:
        ContractError: The file does not exist, cannot be read, is a pipe, device or folder, or is too large. Where it
            grows beyond the limit, the error comes when the limit is reached.
    """
    advice = f"; {option} raises it" if option else ""
    too_large = ContractError.of(document, f"is larger than the limit of {limit:,} bytes{advice}")
    with _open_regular(path, document) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise too_large
        remaining = limit
        while line := file.readline(remaining + 1):
            remaining -= len(line)
            if remaining < 0:
                raise too_large
            yield line


@contextmanager
def _open_regular(path: Path, document: str) -> Iterator[BinaryIO]:
    """Open a regular file without waiting for a pipe, and raise errors in the contract's words."""
    # The flag opens a pipe at once, even if nobody writes to it.
    non_blocking = getattr(os, "O_NONBLOCK", 0)
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | non_blocking)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ContractError.of(document, "is not a regular file")
            yield file
    except ContractError:
        raise
    except FileNotFoundError:
        raise ContractError.of(document, "there is no such file") from None
    except (OSError, ValueError) as error:
        raise ContractError.of(document, f"cannot be read: {reason_of(error)}") from error


def parse_json(content: bytes, document: str) -> Any:  # noqa: ANN401 - any JSON value
    """Parse JSON text in UTF-8 strictly.

    Args:
        content: The text.
        document: Name of the document, for the message.

    Returns:
        The value: dictionaries, lists, text, finite 64-bit numbers, booleans and None, nested at most 32 deep.

    Raises:
        ContractError: It is not JSON, is nested deeper, repeats a key, or holds a number or text out of bounds.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ContractError.of(document, f"is not UTF-8: byte {error.start} is {byte:#04x}") from None

    if text.startswith("\ufeff"):
        raise ContractError.of(document, "starts with a byte order mark; save it as UTF-8 without")
    if not text.strip():
        raise ContractError.of(document, "is empty")

    try:
        value = _DECODER.decode(text)
        problems = list(_find_problems(value, ()))
    except RecursionError:
        raise ContractError.of(document, f"is nested deeper than the limit of {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        rule = f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise ContractError.of(document, rule) from None
    if problems:
        raise ContractError(document, problems)
    return value


@dataclass(frozen=True)
class _BadNumber:
    """Replaces an invalid number in the parsed value, until its pointer is known."""

    text: str
    rule: str


class _RepeatingObject(dict[str, Any]):
    """Replaces an object with repeated keys in the parsed value, until its pointer is known."""

    repeated: list[str]


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) == len(pairs):
        return content
    repeating = _RepeatingObject(content)
    repeating.repeated = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    return repeating


def _read_integer(text: str) -> int | _BadNumber:
    # Python takes quadratic time for integers of many digits, so the length is checked first.
    if len(text) <= LONGEST_NUMBER and -(2**63) <= int(text) < 2**63:
        return int(text)
    return _BadNumber(text, "is an integer beyond 64 bits")


def _read_float(text: str) -> float | _BadNumber:
    if len(text) > LONGEST_NUMBER:
        return _BadNumber(text, f"is a number of more than {LONGEST_NUMBER} characters")
    number = float(text)
    return number if math.isfinite(number) else _BadNumber(text, "is a number beyond the range of 64-bit floats")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_read_object,
    parse_int=_read_integer,
    parse_float=_read_float,
    parse_constant=lambda text: _BadNumber(text, "is not a JSON number"),
)


def _find_problems(value: object, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Yield the problems of a parsed value; RecursionError where it is nested too deep, as the parser raises."""
    if isinstance(value, list | dict) and len(path) >= MAX_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        if _has_lone_surrogate(value):
            yield Problem(join_pointer(path), short_json(value), "holds half of a surrogate pair")
    elif isinstance(value, _BadNumber):
        yield Problem(join_pointer(path), shorten(value.text), value.rule)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _find_problems(part, (*path, index))
    elif isinstance(value, dict):
        for key in getattr(value, "repeated", ()):
            yield Problem(join_pointer((*path, key)), "", "the key is repeated in one object")
        for key, part in value.items():
            if _has_lone_surrogate(key):
                yield Problem(join_pointer((*path, key)), "", "the key holds half of a surrogate pair")
            # Most of a catalog is ASCII text in objects; a generator for each would take most of the time.
            if not isinstance(part, str) or not part.isascii():
                yield from _find_problems(part, (*path, key))


def _has_lone_surrogate(text: str) -> bool:
    return not text.isascii() and _SURROGATE.search(text) is not None

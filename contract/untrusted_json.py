"""JSON from strangers: bounded in size and depth, unambiguous, with numbers and text that any program can hold."""

from __future__ import annotations

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

MAX_DEPTH = 32
# The longest float that Python or JavaScript writes has 25 characters.
LONGEST_NUMBER = 100

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_limited(path: Path, limit: int, document: str) -> bytes:
    """Read a regular file that is not larger than a limit in bytes, of which no more than one byte beyond is ever read.

    Args:
        path: The file.
        limit: The limit.
        document: What the file is, for the message.

    Raises:
        ContractError: There is no such file, it cannot be read, is a pipe, device or folder, or is too large.
    """
    with _opened(path, document) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise _refuse(document, f"is larger than {limit:,} bytes, the limit")
    return content


def read_lines(path: Path, limit: int, option: str, document: str) -> Iterator[bytes]:
    """Read the lines of a regular file one by one, as `read_limited` reads it whole.

    Args:
        path: The file.
        limit: The limit.
        option: The option by which the limit can be raised, for the message.
        document: What the file is, for the message.

    Yields:
        The lines with their ends, of which none but the last lacks its line feed.

    Raises:
        ContractError: As of `read_limited`; where the file grows beyond the limit, once that is reached.
    """
    larger = _refuse(document, f"is larger than {limit:,} bytes, the limit; {option} raises it")
    with _opened(path, document) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise larger
        left = limit
        while line := file.readline(left + 1):
            left -= len(line)
            if left < 0:
                raise larger
            yield line


@contextmanager
def _opened(path: Path, document: str) -> Iterator[BinaryIO]:
    """Open a regular file without ever waiting for one that is none, and say what is wrong with it."""
    # A pipe that nobody writes to is opened at once instead of when somebody does.
    at_once = getattr(os, "O_NONBLOCK", 0)
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | at_once)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _refuse(document, "is not a regular file")
            yield file
    except ContractError:
        raise
    except FileNotFoundError:
        raise _refuse(document, "there is no such file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _refuse(document, f"cannot be read: {reason}") from error


def parse_json(content: bytes, document: str) -> Any:  # noqa: ANN401 - any JSON value
    """Parse JSON text in UTF-8 strictly.

    Args:
        content: The text.
        document: What it is, for the message.

    Returns:
        The value: dictionaries, lists, text, finite 64-bit numbers, booleans and None, nested at most 32 deep.

    Raises:
        ContractError: It is not JSON, is nested deeper, repeats a key, or holds a number or text out of bounds.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise _refuse(document, f"is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}") from None
    if text.startswith("\ufeff"):
        raise _refuse(document, "starts with a byte order mark; save it as UTF-8 without")
    if not text.strip():
        raise _refuse(document, "is empty")
    if _depth_exceeds_limit(text):
        raise _refuse(document, f"is nested deeper than {MAX_DEPTH} levels, the limit")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _refuse(document, f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    problems = list(_find_problems(value, ()))
    if problems:
        raise ContractError(document, problems)
    return value


@dataclass(frozen=True)
class _BadNumber:
    """Stands in the parsed value for a number that is refused, until its place is known."""

    text: str
    rule: str


class _RepeatingObject(dict[str, Any]):
    """Stands in the parsed value for an object that names a key more than once, until its place is known."""

    repeated: list[str]


def _depth_exceeds_limit(text: str) -> bool:
    """Look for deep nesting before the parser, which recurses, sees it."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for token in _TOKEN.finditer(text):
        character = token[0]
        if character in ("[", "{"):
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif character in ("]", "}"):
            depth -= 1
    return False


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) == len(pairs):
        return content
    repeating = _RepeatingObject(content)
    repeating.repeated = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    return repeating


def _read_integer(text: str) -> int | _BadNumber:
    # Python takes quadratic time for integers of many digits, so that the length comes first.
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


def _find_problems(value: object, place: tuple[str | int, ...]) -> Iterator[Problem]:
    if isinstance(value, str):
        if _is_halved(value):
            yield Problem(join_pointer(place), short_json(value), "holds half of a surrogate pair")
    elif isinstance(value, dict):
        for key in getattr(value, "repeated", ()):
            yield Problem(join_pointer((*place, key)), "", "the key comes more than once in one object")
        for key, part in value.items():
            if _is_halved(key):
                yield Problem(join_pointer((*place, key)), "", "the key holds half of a surrogate pair")
            # Nearly all of a catalog is plain text in objects, and a generator for each would take most of the time.
            if not isinstance(part, str) or not part.isascii():
                yield from _find_problems(part, (*place, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _find_problems(part, (*place, index))
    elif isinstance(value, _BadNumber):
        yield Problem(join_pointer(place), shorten(value.text), value.rule)


def _is_halved(text: str) -> bool:
    return not text.isascii() and _SURROGATE.search(text) is not None


def _refuse(document: str, rule: str) -> ContractError:
    return ContractError(document, [Problem("", "", rule)])

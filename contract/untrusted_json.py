"""JSON from strangers: limited in size and depth, unambiguous, with numbers and text that any program can hold."""

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from headstart.contract.problems import ContractError, short_json, shorten
from headstart.output.errors import reason_of

MAX_DEPTH = 32
# The longest float that Python or JavaScript writes has 25 characters.
LONGEST_NUMBER = 100


def read_limited(path: Path, limit: int, document: str) -> bytes:
    """Read a regular file, never more than one byte beyond a limit.

    Args:
        path: The file.
        limit: The limit in bytes.
        document: Name of the document, for the message.

    Raises:
        ContractError: The file does not exist, cannot be read, is a pipe, device or folder, or is too large.
    """
    try:
        # Reading a pipe would wait for its writer.
        if path.exists() and not path.is_file():
            raise ContractError.of(document, "is not a regular file")
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except ContractError:
        raise
    except FileNotFoundError:
        raise ContractError.of(document, "there is no such file") from None
    except (OSError, ValueError) as error:
        raise ContractError.of(document, f"cannot be read: {reason_of(error)}") from error
    if len(content) > limit:
        raise ContractError.of(document, f"is larger than the limit of {limit:,} bytes")
    return content


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
        if text.startswith("\ufeff"):
            raise _RefusedError("starts with a byte order mark; save it as UTF-8 without")
        if not text.strip():
            raise _RefusedError("is empty")
        value = _DECODER.decode(text)
        _check_depth(value)
        # Half of a surrogate pair has no encoding.
        json.dumps(value, ensure_ascii=False).encode()
    except _RefusedError as error:
        rule = str(error)
    except UnicodeDecodeError as error:
        rule = f"is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}"
    except UnicodeEncodeError as error:
        rule = f"holds half of a surrogate pair, {short_json(error.object[error.start])}"
    except RecursionError:
        rule = f"is nested deeper than the limit of {MAX_DEPTH} levels"
    except json.JSONDecodeError as error:
        rule = f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
    else:
        return value
    raise ContractError.of(document, rule)


class _RefusedError(Exception):
    """The JSON is not strict; the message says why."""


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise _RefusedError(f"repeats the key {short_json(key)} in one object")
    return value


def _read_integer(text: str) -> int:
    # Python takes quadratic time for integers of many digits, so the length is checked first.
    if len(text) <= LONGEST_NUMBER and -(2**63) <= int(text) < 2**63:
        return int(text)
    raise _RefusedError(f"has an integer beyond 64 bits, {shorten(text)}")


def _read_float(text: str) -> float:
    if len(text) > LONGEST_NUMBER:
        raise _RefusedError(f"has a number of more than {LONGEST_NUMBER} characters, {shorten(text)}")
    if math.isfinite(number := float(text)):
        return number
    raise _RefusedError(f"has a number beyond the range of 64-bit floats, {text}")


def _refuse_constant(text: str) -> NoReturn:
    raise _RefusedError(f"has {text}, which is not a JSON number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_read_object, parse_int=_read_integer, parse_float=_read_float, parse_constant=_refuse_constant
)


def _check_depth(value: object, depth: int = 0) -> None:
    """Raise a RecursionError for a value that is nested too deep, as the parser does."""
    if isinstance(value, list | dict):
        if depth >= MAX_DEPTH:
            raise RecursionError
        for part in value.values() if isinstance(value, dict) else value:
            # Most of a catalog is text in objects.
            if isinstance(part, list | dict):
                _check_depth(part, depth + 1)

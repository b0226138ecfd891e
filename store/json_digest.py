"""Digests of JSON values, such as a table's key or everything that determines a trace, and documents that carry one."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Key of a document's own digest, and of those of the files that were written with it.
SEAL, FILES = "sha256", "files_sha256"


def digest_of(values: Mapping[str, Any]) -> str:
    """Return a digest that is the same for values that are the same in JSON.

    Args:
        values: JSON values; tuples equal lists, and the order of keys does not matter.

    Returns:
        64 hexadecimal digits.
    """
    # JSON turns a number that is a key into a text.
    plain = json.loads(json.dumps(values))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def sealed(document: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return a document with its own digest, and those of files that belong to it.

    Args:
        document: JSON values.
        files: Contents of the files by name.
    """
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    whole = {**{key: value for key, value in document.items() if key != SEAL}, FILES: digests}
    return {**whole, SEAL: digest_of(whole)}


def read_sealed(path: Path) -> dict[str, Any]:
    """Read a document that `sealed` returned.

    Args:
        path: Its file.

    Raises:
        ValueError: It is no JSON object, or not the one that was written.
        OSError: The file cannot be read.
    """
    document = json.loads(path.read_bytes())
    if not isinstance(document, dict):
        raise ValueError("not an object")
    if document.get(SEAL) != digest_of({key: value for key, value in document.items() if key != SEAL}):
        raise ValueError(f"{path.name} is not as it was written")
    return document


def read_file_of(document: Mapping[str, Any], path: Path) -> bytes:
    """Read a file that belongs to a document.

    Args:
        document: As `read_sealed` returned it.
        path: The file.

    Raises:
        ValueError: It is not the file that was written with the document.
        OSError: It cannot be read.
    """
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != document[FILES].get(path.name):
        raise ValueError(f"{path.name} is not as it was written")
    return content

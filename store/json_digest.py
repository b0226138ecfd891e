"""Digests of JSON values, such as a table's key or everything that determines a trace."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


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

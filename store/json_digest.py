"""A name for JSON values by their content: of a table's key, or of what determines a trace."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest_of(values: Mapping[str, Any]) -> str:
    """Digest JSON values: the same for those that JSON gives back alike.

    Args:
        values: JSON values; tuples and lists are the same, and the order of keys has no part in it.

    Returns:
        64 hexadecimal digits.
    """
    # As JSON gives it back, so that a key that is a number and one that is its text are the same.
    plain = json.loads(json.dumps(values))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()

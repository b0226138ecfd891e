"""Correct predictions of each class as the ledger stores them."""

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The type of the numbers, and how many a row has.
HEADER = struct.Struct("<3sI")
# Higher levels take several times as long for a few per cent.
LEVEL = 1


def pack(counts: NDArray[np.unsignedinteger[Any]]) -> bytes:
    """Return counts as compressed bytes.

    Args:
        counts: Sizes of the classes, and below them the correct predictions of each at every evaluation,
            `[1 + evaluations, classes]`.
    """
    # From one evaluation to the next, few counts change. Differences of unsigned numbers may wrap around, as their
    # sums then do.
    steps = np.diff(counts.astype(counts.dtype.newbyteorder("<")), axis=0, prepend=counts.dtype.type(0))
    header = HEADER.pack(steps.dtype.str.encode(), counts.shape[1])
    return zlib.compress(header + steps.tobytes(), LEVEL)


def unpack(content: bytes) -> NDArray[np.unsignedinteger[Any]]:
    """Return the counts of which `pack` made bytes."""
    plain = zlib.decompress(content)
    kind, classes = HEADER.unpack_from(plain)
    steps = np.frombuffer(plain, kind.decode(), offset=HEADER.size).reshape(-1, classes)
    return steps.cumsum(0, dtype=steps.dtype)

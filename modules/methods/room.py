"""Room in tensors for what is still to come."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def with_room(tensor: Tensor, axes: Sequence[int], needed: int, most: int) -> Tensor:
    """Give a tensor that has room along some axes, so that its memory follows what was seen.

    Room is doubled whenever it runs out: all that is ever copied is less than twice what is there in the end.

    Args:
        tensor: The tensor, of the same length along these axes.
        axes: The axes.
        needed: Least length along them.
        most: Length beyond which no more than what is needed is set aside.

    Returns:
        The tensor itself where it is long enough, else a longer one that begins with its values and goes on with zeros.
    """
    length = tensor.shape[axes[0]]
    if length >= needed:
        return tensor
    shape, old = list(tensor.shape), [slice(None)] * tensor.dim()
    for axis in axes:
        shape[axis], old[axis] = max(needed, min(2 * length, most)), slice(length)
    roomy = tensor.new_zeros(shape)
    roomy[tuple(old)] = tensor
    return roomy

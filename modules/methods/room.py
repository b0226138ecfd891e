"""Room in tensors for later values."""

from collections.abc import Sequence

from torch import Tensor


def with_room(tensor: Tensor, axes: Sequence[int], needed: int, most: int) -> Tensor:
    """Return a tensor with enough room along some axes, so that its memory follows the samples seen.

    Room is doubled whenever it does not suffice: all copies together are less than twice the final tensor.

    Args:
        tensor: The tensor, of the same length along these axes.
        axes: The axes.
        needed: Least length along them.
        most: Length above which no more room than needed is allocated.

    Returns:
        The tensor itself where it is long enough, else a longer one that begins with its values and ends with zeros.
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

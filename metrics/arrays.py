"""Arguments of metrics as NumPy arrays; tensors of PyTorch are accepted without importing it."""

import sys
from numbers import Integral
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

# A NumPy array or a PyTorch tensor; the type of the latter would import PyTorch.
Array: TypeAlias = Any
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]


def is_tensor(value: object) -> bool:
    """Return whether a value is a PyTorch tensor; none exists before PyTorch is imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def check_integer(name: str, value: object, minimum: int) -> None:
    """Raise a ValueError, which begins with the argument's name, if a value is no integer or less than the minimum."""
    if not isinstance(value, Integral) or int(value) < minimum:
        raise ValueError(f"{name} must be an integer of {minimum} or more, not {value!r}")


def check_choice(name: str, value: object, kind: Any) -> None:  # noqa: ANN401 - a Literal
    """Raise a ValueError, which begins with the argument's name, for a value that is none of a Literal."""
    if value not in get_args(kind):
        raise ValueError(f"{name} must be {' or '.join(get_args(kind))}, not {value!r}")


def as_array(name: str, value: Array) -> NDArray[Any]:
    """Return arrays as they are, nested lists as an array, and tensors in the memory of the CPU.

    Raises:
        ValueError: Beginning with the argument's name: nested lists differ in length, an array is masked, or a tensor
            is sparse, without values or of 8 bits.
    """
    if is_tensor(value):
        return _on_host(name, value)
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(
            f"{name} must not be a masked array, because its mask would be ignored; leave out the masked values"
        )
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array, or lists whose lengths agree") from error


def _on_host(name: str, tensor: Array) -> NDArray[Any]:
    """Return a tensor as a NumPy array, which shares the memory of a tensor on the CPU."""
    torch = sys.modules["torch"]
    if tensor.layout != torch.strided or tensor.device.type == "meta":
        raise ValueError(
            f"{name} must be a dense tensor with values, not a {tensor.layout} one on device {tensor.device}"
        )
    if tensor.is_floating_point() and tensor.element_size() < 2:
        raise ValueError(f"{name} must be real numbers, integers or of 16 bits and more, not {tensor.dtype}")
    # NumPy has no bfloat16.
    values = tensor.detach().float() if tensor.dtype == torch.bfloat16 else tensor.detach()
    return np.asarray(values.cpu().resolve_conj().numpy())


def in_place(name: str, value: Array) -> Array:
    """Return real numbers without a copy: a memory-mapped array stays one, and `store.gathered_rows.GatheredRows`.

    Args:
        name: The argument, for the error message.
        value: An array, a tensor or nested lists of real numbers; a tensor on an accelerator is copied.

    Raises:
        ValueError: As for `as_array`, or the values are not real numbers.
    """
    array = value if getattr(value, "on_disk", False) else as_array(name, value)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be real numbers, not {array.dtype}")
    return array


def to_float64(name: str, value: Array) -> Floats:
    """Return real numbers as `in_place` does, in float64; they may share memory with the argument."""
    return np.asarray(in_place(name, value), np.float64)

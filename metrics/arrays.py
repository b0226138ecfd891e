"""Operations on NumPy arrays and PyTorch tensors, by functions of the same names in both, without importing PyTorch."""

import sys
from numbers import Integral
from types import ModuleType
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


def namespace(array: Array) -> ModuleType:
    """Return the module whose functions take an array, `numpy` or `torch`."""
    return sys.modules["torch"] if is_tensor(array) else np


def stays_on_device(tensor: Array) -> bool:
    """Return whether PyTorch computes with a tensor on its device, as for all devices but the CPU.

    On the CPU, NumPy computes Gram matrices in half the time: it detects that both factors are the same matrix.
    """
    # MPS has no float64.
    return tensor.device.type not in ("cpu", "mps")


def check_integer(name: str, value: object, minimum: int) -> None:
    """Raise a ValueError, which begins with the argument's name, if a value is no integer or less than the minimum."""
    if not isinstance(value, Integral) or int(value) < minimum:
        raise ValueError(f"{name} must be an integer of {minimum} or more, not {value!r}")


def check_choice(name: str, value: object, kind: Any) -> None:  # noqa: ANN401 - a Literal
    """Raise a ValueError, which begins with the argument's name, for a value that is none of a Literal."""
    if value not in get_args(kind):
        raise ValueError(f"{name} must be {' or '.join(get_args(kind))}, not {value!r}")


def as_array(name: str, value: Array) -> Array:
    """Return nested lists as an array, and arrays and tensors as they are.

    Raises:
        ValueError: Beginning with the argument's name: nested lists differ in length, or an array is masked.
    """
    if is_tensor(value):
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(
            f"{name} must not be a masked array, because its mask would be ignored; leave out the masked values"
        )
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array, or lists whose lengths agree") from error


def in_place(name: str, value: Array, on_host: bool = False) -> Array:
    """Return real numbers without a copy: a memory-mapped array stays one, and `store.gathered_rows.GatheredRows`.

    Args:
        name: The argument, for the error message.
        value: An array, a tensor or nested lists of real numbers.
        on_host: Whether a tensor on an accelerator is copied to the memory of the CPU.

    Returns:
        A NumPy array, or a tensor where `stays_on_device` unless `on_host`, of any real type.

    Raises:
        ValueError: The values are not real numbers, or a tensor is sparse or without values.
    """
    if not is_tensor(value):
        array = value if getattr(value, "on_disk", False) else as_array(name, value)
        if array.dtype.kind not in "fiub":
            raise ValueError(f"{name} must be real numbers, not {array.dtype}")
        return array

    torch = namespace(value)
    if value.layout != torch.strided or value.device.type == "meta":
        raise ValueError(
            f"{name} must be a dense tensor with values, not a {value.layout} one on device {value.device}"
        )
    if value.is_complex() or (value.is_floating_point() and value.element_size() < 2):
        raise ValueError(f"{name} must be real numbers, integers or of 16 bits and more, not {value.dtype}")

    values = value.detach()
    if stays_on_device(values) and not on_host:
        return values
    # NumPy has no bfloat16.
    return (values.float() if values.dtype == torch.bfloat16 else values).cpu().numpy()


def to_float64(name: str, value: Array) -> Array:
    """Return real numbers as `in_place` does, in float64; they may share memory with the argument."""
    values = in_place(name, value)
    return values.double() if is_tensor(values) else np.asarray(values, np.float64)


def to_host(array: Array) -> NDArray[Any]:
    """Return an array or a tensor as a NumPy array in the memory of the CPU."""
    return np.asarray(array.detach().cpu().numpy() if is_tensor(array) else array)


def like(array: NDArray[Any], other: Array) -> Array:
    """Convert a NumPy array to the module and the device of another array."""
    return namespace(other).asarray(array, device=other.device)

"""A GPU that is not there: its tensors have devices and shapes, and no values."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

GPU = torch.device("cuda", 0)
# Operations that read a value, and those that check whether a factorisation has failed.
READS = ("_local_scalar_dense", "_linalg_check_errors")


class Waits(TorchDispatchMode):
    """Notes the operations for which the processor waits for the GPU; a value that is read there is 0.

    Attributes:
        noted: Their names, in the order in which they came.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.noted: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        if name in READS and args[0].device == GPU:
            self.noted.append(str(func))
            return 0
        result = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, Tensor)]
        # A number from the processor goes along with the operation.
        devices = {tensor.device.type for tensor in tensors if tensor.dim() or tensor.device == GPU}
        # Only the shape of a tensor elsewhere is used by `_like`. A copy waits though asked not to: nothing
        # here is in pinned memory, and a value on the processor is read before it has come there.
        if len(devices) > 1 and not name.endswith("_like"):
            self.noted.append(str(func))
        return result


@contextmanager
def absent_gpu() -> Iterator[Waits]:
    """Simulate tensors on a GPU; operations on two devices raise an error, and so does a shape that depends on values.

    Gradients are zeros, since torch follows them on devices that are there alone.
    """
    generator = torch.Generator
    with (
        FakeTensorMode(allow_non_fake_inputs=True),
        Waits() as waits,
        patch.object(Tensor, "backward", _zeros),
        # The simulated GPU has no generator, and nothing is sampled.
        patch.object(torch, "Generator", lambda device="cpu": generator()),
    ):
        yield waits


def to_gpu(module: nn.Module) -> None:
    """Move a module there, which `Module.to` cannot do with tensors without values."""
    for each in module.modules():
        for name, parameter in each.named_parameters(recurse=False):
            each.register_parameter(name, nn.Parameter(parameter.detach().to(GPU)))
        for name, buffer in each.named_buffers(recurse=False):
            setattr(each, name, buffer.to(GPU))


def _zeros(loss: Tensor) -> None:
    functions = [loss.grad_fn]
    for function in functions:
        if function is not None:
            if hasattr(function, "variable"):
                function.variable.grad = torch.zeros_like(function.variable)
            functions += [each for each, _ in function.next_functions if each not in functions]

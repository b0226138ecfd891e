"""Pickling of a method's state, with what torch leaves out; tensors of the start are stored by name."""

import copyreg
import pickle
from collections.abc import Callable
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from headstart.modules.method import Start


def pickling(start: Start) -> Any:  # noqa: ANN401 - what torch calls a pickle module
    """Return the pickle module with which torch saves and loads states.

    Tensors of the start are stored by name, and looked up in the start when they are loaded.

    Args:
        start: What the methods start from.
    """
    values = {field.name: getattr(start, field.name) for field in fields(start)}
    names = {id(value): name for name, value in values.items() if isinstance(value, Tensor)}

    class Pickler(_WholePickler):
        def reducer_override(self, thing: Any) -> Any:  # noqa: ANN401
            return (_tensor_of_start, (names[id(thing)],)) if id(thing) in names else super().reducer_override(thing)

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401
            if (module, name) == (__name__, _tensor_of_start.__name__):
                return values.__getitem__
            return super().find_class(module, name)

    return SimpleNamespace(**{**vars(pickle), "Pickler": Pickler, "Unpickler": Unpickler})


def _tensor_of_start(name: str) -> Tensor:
    raise pickle.UnpicklingError(f"the tensor {name} of the start is known where the state is loaded with `pickling`")


class _WholePickler(pickle.Pickler):
    """Pickles what torch leaves out: attributes that a class of optimisers adds, and gradients of parameters."""

    def reducer_override(self, thing: Any) -> Any:  # noqa: ANN401
        if isinstance(thing, Optimizer) and type(thing).__getstate__ is Optimizer.__getstate__:
            return copyreg.__newobj__, (type(thing),), _attributes_of(thing)  # type: ignore[attr-defined]
        if isinstance(thing, Tensor) and thing.is_leaf and thing.grad is not None:
            build, arguments = thing.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
            return _with_gradient, (build, arguments, thing.grad)
        return NotImplemented


def _attributes_of(optimizer: Optimizer) -> dict[str, Any]:
    """Return the attributes of an optimiser, without those that torch creates again."""
    if any(hooks for name, hooks in vars(optimizer).items() if name.startswith("_optimizer_")):
        raise pickle.PicklingError(f"a hook of {type(optimizer).__name__} is not stored; do what it does in adapt")
    own = {name: value for name, value in vars(optimizer).items() if not name.startswith("_optimizer_")}
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        own.pop("step", None)
    return own


def _with_gradient(build: Callable[..., Tensor], arguments: Any, gradient: Tensor) -> Tensor:  # noqa: ANN401
    tensor = build(*arguments)
    tensor.grad = gradient
    return tensor

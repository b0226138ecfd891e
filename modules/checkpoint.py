"""The state of a method between two batches, as it goes into a checkpoint and comes out of it."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, SimpleNamespace
from typing import Any

from lightning.pytorch import LightningModule
from torch import Tensor, uint8
from torch.nn import Module
from torch.optim import Optimizer
from torch.utils.weak import WeakTensorKeyDictionary

from headstart.modules.global_generators import GlobalGenerators
from headstart.modules.method import Method, Start
from headstart.modules.provenance import source_digests

FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, partial, type)
# What belongs to Lightning or follows from what is fed.
NOT_OWN = vars(LightningModule()).keys() - vars(Module()).keys() | {"start"}

_START: ContextVar[Start] = ContextVar("start")


def state_of(
    method: Method, constructed: Mapping[str, Any], optimizers: Sequence[Optimizer], generators: GlobalGenerators
) -> dict[str, Any]:
    """Give everything of a method that its batches change.

    Args:
        method: The method.
        constructed: Its attributes as the constructor left them.
        optimizers: Its optimisers.
        generators: Its state of the global generators.

    Returns:
        Its own attributes; the optimisers; the generators; the digests of the source code of its modules.
    """
    attributes = own_attributes(method, constructed)
    return {
        "attributes": attributes,
        "optimizers": list(optimizers),
        "generators": generators,
        "sources": _sources(attributes),
    }


def own_attributes(method: Method, constructed: Mapping[str, Any]) -> dict[str, Any]:
    """Give the attributes of a method that are its state.

    Args:
        method: The method.
        constructed: Its attributes as the constructor left them.

    Returns:
        All but functions of the constructor, its own functions, weak dictionaries, which are only kept to save time,
        and what is Lightning's.
    """

    def is_made_again(name: str, value: object) -> bool:
        if isinstance(value, MethodType) and value.__self__ is method:
            return True
        return isinstance(value, WeakTensorKeyDictionary) or (
            isinstance(value, FUNCTIONS) and constructed.get(name) is value
        )

    own = {name: value for name, value in vars(method).items() if name not in NOT_OWN}
    return {name: value for name, value in own.items() if not is_made_again(name, value)}


def put_back(method: Method, constructed: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
    """Put a method into a state, in the place of the one that it is in.

    Args:
        method: The method.
        constructed: Its attributes as the constructor left them.
        attributes: Its own attributes then, as `own_attributes` gave them.
    """
    for name in own_attributes(method, constructed):
        del vars(method)[name]
    vars(method).update(attributes)


def is_current(state: Mapping[str, Any]) -> bool:
    """Say whether a stored state is of the source code as it is now.

    Args:
        state: As `state_of` gave it.
    """
    return bool(state["sources"] == _sources(state["attributes"]))


def _sources(attributes: Mapping[str, Any]) -> dict[str, str]:
    children = [child for child in attributes["_modules"].values() if child is not None]
    return source_digests({type(module) for child in children for module in child.modules()})


def why_not(state: Mapping[str, Any]) -> str | None:
    """Say why a state cannot be stored; None where it can.

    Args:
        state: As `state_of` gives it.
    """
    try:
        _WithoutTensors(state["attributes"]["_modules"]).dump(state)
    # Whatever a class of the user's raises when it is pickled.
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def pickling(start: Start) -> Any:  # noqa: ANN401 - what torch.save calls a pickle module
    """Give what `torch.save` is to pickle states with: tensors of the start are named instead of stored.

    Args:
        start: What the methods started from.
    """
    shared = {
        id(value): field.name for field in fields(start) if isinstance(value := getattr(start, field.name), Tensor)
    }

    class Pickler(_WholePickler):
        def reducer_override(self, thing: Any) -> Any:  # noqa: ANN401
            return (_of_start, (shared[id(thing)],)) if id(thing) in shared else super().reducer_override(thing)

    return SimpleNamespace(Pickler=Pickler, __name__=pickle.__name__)


@contextmanager
def unpickling(start: Start) -> Iterator[None]:
    """Let states that are loaded take the tensors of a start.

    Args:
        start: What the methods start from.
    """
    token = _START.set(start)
    try:
        yield
    finally:
        _START.reset(token)


def _of_start(name: str) -> Any:  # noqa: ANN401
    return getattr(_START.get(), name)


def digest_of_state(method: Method, constructed: Mapping[str, Any]) -> str:
    """Digest all that a method holds; where something of it cannot be pickled, nothing.

    Args:
        method: The method.
        constructed: Its attributes as the constructor left them.
    """
    written = io.BytesIO()
    try:
        _WithDigests(written).dump(own_attributes(method, constructed))
    # Whatever a class of the user's raises when it is pickled.
    except Exception:
        return ""
    return hashlib.sha256(written.getbuffer()).hexdigest()


class _WholePickler(pickle.Pickler):
    """Pickles what torch leaves out: attributes that a class of optimisers adds, and gradients of parameters."""

    def reducer_override(self, thing: Any) -> Any:  # noqa: ANN401
        if isinstance(thing, Optimizer) and type(thing).__getstate__ is Optimizer.__getstate__:
            return _without_init, (type(thing),), _own_of_optimizer(thing)
        if isinstance(thing, Tensor) and thing.is_leaf and thing.grad is not None:
            make, values = thing.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
            return _with_gradient, (make, values, thing.grad)
        return NotImplemented


def _own_of_optimizer(optimizer: Optimizer) -> dict[str, Any]:
    """Give the attributes of an optimiser, without those that torch makes anew."""
    if any(hooks for name, hooks in vars(optimizer).items() if name.startswith("_optimizer_")):
        raise pickle.PicklingError(f"a hook of {type(optimizer).__name__} is not stored; do what it does in adapt")
    own = {name: value for name, value in vars(optimizer).items() if not name.startswith("_optimizer_")}
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        own.pop("step", None)
    return own


def _without_init(kind: type[Optimizer]) -> Optimizer:
    return kind.__new__(kind)


def _with_gradient(make: Callable[..., Tensor], values: Any, gradient: Tensor) -> Tensor:  # noqa: ANN401
    tensor = make(*values)
    tensor.grad = gradient
    return tensor


class _WithoutTensors(_WholePickler):
    """Pickles all but the contents of tensors, to see whether that can be done.

    Args:
        modules: What holds the submodules of the method.
    """

    def __init__(self, modules: Mapping[str, Module]) -> None:
        super().__init__(io.BytesIO())
        self.modules = modules

    def persistent_id(self, thing: Any) -> Any:  # noqa: ANN401
        if isinstance(thing, Tensor) and thing.grad_fn is not None:
            raise pickle.PicklingError("a tensor that gradients flow back from is kept; detach it")
        if isinstance(thing, Tensor) and (thing._backward_hooks or thing._post_accumulate_grad_hooks):
            raise pickle.PicklingError("a hook of a tensor is not stored; do what it does in adapt")
        if isinstance(thing, Method) and thing._modules is self.modules:
            raise pickle.PicklingError("an attribute refers to the method itself")
        return "tensor" if isinstance(thing, Tensor) else None


class _WithDigests(pickle.Pickler):
    """Pickles digests of tensors in their places, and of weak dictionaries nothing."""

    def persistent_id(self, thing: Any) -> Any:  # noqa: ANN401
        if isinstance(thing, WeakTensorKeyDictionary):
            return "weak"
        if isinstance(thing, Tensor):
            values: Any = thing.detach().cpu().contiguous().flatten().view(uint8).numpy()
            return hashlib.sha256(values).hexdigest()
        return None

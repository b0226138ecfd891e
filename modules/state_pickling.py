"""Pickling of the state of a method, by which it is stored in a checkpoint and compared with itself."""

import copyreg
import hashlib
import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import fields
from types import BuiltinFunctionType, FunctionType, ModuleType, SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
from lightning.pytorch import LightningModule
from torch import Generator, Tensor, uint8
from torch.nn import Module
from torch.optim import Optimizer
from torch.utils.weak import WeakTensorKeyDictionary

from headstart.modules.method import Method, Start

# These attributes of a method belong to Lightning, or follow from the stream.
NOT_OWN = vars(LightningModule()).keys() - vars(Module()).keys() | {"start"}
# No copy contains these attributes of a backbone's modules: folded network, modes, and the code of a traced one.
NOT_COPIED = ("_folded", "_is_evaluated", "training", "_graph", "_code", "_lineno_map", "_prologue_start")


def held_by(module: Module) -> dict[str, Any]:
    """Return the attributes of a module that its state consists of; they are not copies.

    Args:
        module: The module.
    """
    return {name: value for name, value in vars(module).items() if name not in NOT_COPIED}


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


def storage_problem(state: Mapping[str, Any]) -> str | None:
    """Return why a state cannot be stored; None where it can.

    Args:
        state: The state, as `MethodState.describe` returns it.
    """
    try:
        _WithoutTensors(state["attributes"]["_modules"]).dump(state)
    # A class of the user's may raise any error when it is pickled.
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def sharing_problem(state: Mapping[str, Any]) -> str | None:
    """Return why a state could not be put back where an array and a tensor share memory; None where none do.

    Args:
        state: The state, which can be stored.
    """
    pickler = _WithAddresses(io.BytesIO())
    pickler.dump(state)
    arrays = [np.lib.array_utils.byte_bounds(array) for array in pickler.arrays]
    tensors = [(storage.data_ptr(), storage.data_ptr() + storage.nbytes()) for storage in pickler.storages]
    is_shared = any(begin < stop and start < end for begin, end in arrays for start, stop in tensors)
    return "an array and a tensor share memory, and would not any more" if is_shared else None


def digest_of(attributes: Mapping[str, Any]) -> str:
    """Return a digest of everything that attributes hold; an empty one where something of it cannot be pickled.

    Args:
        attributes: The attributes of a method.
    """
    stored = io.BytesIO()
    try:
        _WithDigests(stored).dump(attributes)
    # A class of the user's may raise any error when it is pickled.
    except Exception:
        return ""
    return hashlib.sha256(stored.getbuffer()).hexdigest()


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


class _WithoutTensors(_WholePickler):
    """Pickles everything but the contents of tensors, to find out whether that is possible.

    Args:
        modules: The dictionary that holds the submodules of the method.
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


class _WithAddresses(_WholePickler):
    """Pickles everything but the contents of tensors and arrays, and collects these."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.arrays: list[Any] = []
        self.storages: list[Any] = []

    def persistent_id(self, thing: Any) -> Any:  # noqa: ANN401
        if isinstance(thing, Tensor):
            self.storages += [thing.untyped_storage()] if thing.device.type == "cpu" else []
            return "tensor"
        if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
            self.arrays.append(thing)
            return "array"
        return None


class _WithDigests(pickle.Pickler):
    """Pickles a digest of each tensor, and nothing of weak dictionaries."""

    def persistent_id(self, thing: Any) -> Any:  # noqa: ANN401
        if isinstance(thing, WeakTensorKeyDictionary):
            return "weak"
        if isinstance(thing, Tensor):
            values: Any = thing.detach().cpu().contiguous().flatten().view(uint8).numpy()
            return hashlib.sha256(values).hexdigest()
        return None


def changes_digest(attributes: Mapping[str, Any]) -> str:
    """Return a digest that differs once torch has changed a tensor that attributes hold, or anything else is changed.

    Contents of tensors are not read, so that it is fast.

    Args:
        attributes: The attributes of a method.
    """
    stored = io.BytesIO()
    try:
        _WithVersions(stored).dump(dict(attributes))
    # Objects may refer to each other more deeply than Python follows.
    except Exception:
        return ""
    return hashlib.sha256(stored.getbuffer()).hexdigest()


class _WithVersions(pickle.Pickler):
    """Pickles versions of tensors, checksums of arrays, and identities of functions, classes and what has no pickle."""

    def reducer_override(self, thing: Any) -> Any:  # noqa: ANN401
        if thing is str:
            return NotImplemented
        if isinstance(thing, Tensor):
            return str, (_versions(thing),)
        if isinstance(thing, Generator):
            return str, (str(crc32(thing.get_state().numpy().tobytes())),)
        if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
            return str, (f"{thing.dtype} {thing.shape} {crc32(np.ascontiguousarray(thing).view(np.uint8).data)}",)
        if isinstance(thing, Module):
            names = NOT_OWN if isinstance(thing, LightningModule) else ()
            return str, ("module",), {name: value for name, value in held_by(thing).items() if name not in names}
        if isinstance(thing, Optimizer):
            return str, ("optimizer",), vars(thing)
        return self._reduce(thing)

    def _reduce(self, thing: Any) -> Any:  # noqa: ANN401
        identity = str, (str(id(thing)),)
        if isinstance(thing, type | FunctionType | BuiltinFunctionType | ModuleType | WeakTensorKeyDictionary):
            return identity
        try:
            reduce = copyreg.dispatch_table.get(type(thing))
            return reduce(thing) if reduce else thing.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        # A class of the user's may raise any error.
        except Exception:
            return identity


def _versions(tensor: Tensor) -> str:
    version = tensor.sum() if tensor.is_inference() else tensor._version
    gradient = "" if not tensor.is_leaf or tensor.grad is None else _versions(tensor.grad)
    return f"{id(tensor)} {version} {gradient}"

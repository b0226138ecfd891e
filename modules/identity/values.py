"""Digests of values that code holds: numbers and arrays, wherever they came from."""

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePath
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

SEPARATORS = ("/", "\\")
LONGEST_PATH = 1000
# A text with an absolute path in it: the location of files changes no count.
ABSOLUTE = re.compile(r"(?<![\w.])(~|\w:)?[/\\]\w")
# Modules of Python whose objects are plain values; those of others may belong to the process.
PLAIN = {"argparse", "array", "builtins", "collections", "datetime", "decimal", "fractions", "functools", "types"}
# Attributes that Python itself sets.
OF_PYTHON = {*vars(ModuleType("")), *vars(type("", (), {})), "__file__", "__path__", "__cached__", "__builtins__"} | {
    "__annotations__",
    "__warningregistry__",
    "__firstlineno__",
    "__static_attributes__",
    "_abc_impl",
}


class ValueDigests:
    """Digests values of modules, classes, functions and objects of the user's own; of all others the type counts.

    Args:
        is_own: Whether a module is the user's own.
        has_file: Whether its code is in a file.

    Attributes:
        modules: Names of the modules of the classes and functions that the values are or contain.
        paths: Paths among the values.
    """

    def __init__(self, is_own: Callable[[str], bool], has_file: Callable[[str], bool]) -> None:
        self.modules: set[str] = set()
        self.paths: set[Path] = set()
        self._is_own, self._has_file = is_own, has_file
        # Objects are kept, so that no other one gets the identity of one of them.
        self._known: dict[int, tuple[object, str]] = {}

    def digest(self, value: object) -> str:
        """Return a text that is the same for the same value in every process.

        Args:
            value: Any object.
        """
        if isinstance(value, PurePath):
            self.paths.add(Path(value))
            return "path"
        if isinstance(value, str):
            if any(each in value for each in SEPARATORS) and len(value) < LONGEST_PATH and value.isprintable():
                self.paths.add(Path(value))
            return "path" if ABSOLUTE.search(value) else repr(value)
        if value is None or isinstance(value, bool | int | float | complex | bytes):
            return repr(value)
        if id(value) not in self._known:
            self._known[id(value)] = value, "cycle"
            parts = [type(value).__qualname__, *self._parts(value)]
            self._known[id(value)] = value, _join(parts)
        return self._known[id(value)][1]

    def module(self, module: ModuleType) -> str:
        """Return a digest of a module's global values, and of those of its classes and functions.

        Args:
            module: The module.
        """
        named = {name: value for name, value in vars(module).items() if name not in OF_PYTHON}
        return _join([f"{name} {self.digest(named[name])}" for name in sorted(named)])

    def _parts(self, value: object) -> list[str]:
        if isinstance(value, ModuleType):
            self.modules.add(value.__name__)
            return [value.__name__]
        if isinstance(value, type):
            return self._class_parts(value)
        if isinstance(value, FunctionType):
            return self._function_parts(value)

        if isinstance(value, list | tuple):
            return [self.digest(each) for each in value]
        if isinstance(value, set | frozenset):
            return sorted(self.digest(each) for each in value)
        if isinstance(value, dict):
            return [self.digest(each) for pair in value.items() for each in pair]

        if isinstance(value, partial):
            return [self.digest(each) for each in (value.func, value.args, value.keywords)]
        if isinstance(value, MethodType):
            return [self.digest(value.__func__), self.digest(value.__self__)]
        if isinstance(value, staticmethod | classmethod):
            return [self.digest(value.__func__)]
        if isinstance(value, property):
            return [self.digest(each) for each in (value.fget, value.fset)]

        return _array_parts(value) or self._object_parts(value)

    def _class_parts(self, kind: type) -> list[str]:
        self.modules.add(kind.__module__)
        path = f"{kind.__module__}.{kind.__qualname__}"
        if not self._is_own(kind.__module__):
            return [path]
        attributes = {name: value for name, value in vars(kind).items() if name not in OF_PYTHON}
        bases = [self.digest(each) for each in kind.__bases__]
        return [path, *bases, *(f"{name} {self.digest(attributes[name])}" for name in sorted(attributes))]

    def _function_parts(self, function: FunctionType) -> list[str]:
        # A decorator gives its own function the name and the module of the function that it wraps.
        module = str(function.__globals__.get("__name__"))
        self.modules |= {module, str(function.__module__)}
        path = f"{module}.{function.__qualname__}"
        if not self._is_own(module):
            return [path]
        held = [function.__defaults__, function.__kwdefaults__, vars(function), *_cells(function)]
        parts = [path, *map(self.digest, held)]
        if not self._has_file(module):
            parts += _code_parts(function.__code__)
            used = {name: function.__globals__.get(name) for name in _global_names(function.__code__)}
            parts += [f"{name} {self.digest(used[name])}" for name in sorted(used)]
        return parts

    def _object_parts(self, value: object) -> list[str]:
        kind = self.digest(type(value))
        is_network = _is_instance(value, "torch.nn", "Module")
        if not is_network and not self._is_own(type(value).__module__):
            # The results of `functools.cache` and the like name the function that they wrap.
            wrapped = getattr(value, "__wrapped__", None) if callable(value) else None
            return [kind, self.digest(wrapped), *map(self.digest, _content(value))]

        attributes = {**_slots(value), **getattr(value, "__dict__", {})}
        if is_network:
            # The other attributes of torch's and Lightning's modules belong to the run.
            is_lightning = _is_instance(value, "lightning.pytorch", "LightningModule")
            package, name = ("lightning.pytorch", "LightningModule") if is_lightning else ("torch.nn", "Module")
            beside = vars(getattr(sys.modules[package], name)()).keys() - {"_parameters", "_buffers", "_modules"}
            attributes = {name: each for name, each in attributes.items() if name not in beside}
        return [kind, *(f"{name} {self.digest(attributes[name])}" for name in sorted(attributes))]


def _join(parts: list[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _is_instance(value: object, package: str, name: str) -> bool:
    """Whether an object is of a class of a package that may not be imported."""
    kind = getattr(sys.modules.get(package), name, None)
    return kind is not None and isinstance(value, kind)


def _array_parts(value: Any) -> list[str]:  # noqa: ANN401 - any object
    """Return type, shape and digest of an array of NumPy or a tensor; nothing for other objects."""
    if _is_instance(value, "torch", "Tensor"):
        if value.device.type == "meta":
            return []
        value = value.to_dense() if value.layout != sys.modules["torch"].strided else value
        shape, flat = value.shape, value.detach().cpu().contiguous().flatten()
        content = flat.view(sys.modules["torch"].uint8).numpy()
    elif _is_instance(value, "numpy", "ndarray") or _is_instance(value, "numpy", "generic"):
        if value.dtype.hasobject or isinstance(value, sys.modules["numpy"].ma.MaskedArray):
            return []
        shape, content = value.shape, sys.modules["numpy"].ascontiguousarray(value)
    else:
        return []
    return [str(value.dtype), str(tuple(shape)), hashlib.sha256(content).hexdigest()]


def _content(value: Any) -> list[object]:  # noqa: ANN401 - any object
    """Return what a plain value of Python, NumPy or torch consists of; nothing for other objects."""
    if isinstance(value, MappingProxyType):
        return [dict(value)]
    if _is_instance(value, "torch", "Generator"):
        return [value.get_state()]
    if type(value).__module__ not in PLAIN and type(value).__module__.partition(".")[0] != "numpy":
        return []
    try:
        _, arguments, *states = value.__reduce_ex__(2)
    # Some cannot be pickled, and a name alone is returned for what a module holds.
    except (TypeError, ValueError):
        return []
    return [arguments, *(list(each) if isinstance(each, Iterator) else each for each in states)]


def _slots(value: object) -> dict[str, object]:
    slots = [vars(kind).get("__slots__", ()) for kind in type(value).__mro__]
    names = [name for each in slots for name in ([each] if isinstance(each, str) else each)]
    return {name: getattr(value, name) for name in names if name not in OF_PYTHON and hasattr(value, name)}


def _cells(function: FunctionType) -> list[object]:
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # not set yet
            cells.append(None)
    return cells


def _code_parts(code: CodeType) -> list[str]:
    parts = [code.co_code.hex(), *code.co_names, *code.co_varnames]
    for constant in code.co_consts:
        parts += _code_parts(constant) if isinstance(constant, CodeType) else [repr(constant)]
    return parts


def _global_names(code: CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_global_names, inner))

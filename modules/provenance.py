"""The provenance of a method: its class, its hyperparameters and the source code of both."""

from __future__ import annotations

import ast
import hashlib
import inspect
import math
import pkgutil
import sys
import textwrap
import uuid
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headstart.modules.method import Method

# Their versions are recorded with the stream.
LIBRARIES = frozenset(
    {"torch", "torchvision", "lightning", "lightning_fabric", "lightning_utilities", "pytorch_lightning"}
)

# By the name of a module: the specification by which it was imported, and its source code at that time.
_SOURCES: dict[str, tuple[object, bytes]] = {}


def provenance(method: Method, options: Mapping[str, Any], max_samples: int) -> dict[str, Any]:
    """Describe everything on which a method's traces depend, besides its stream and its start.

    Args:
        method: The method.
        options: Its options, as for `describe`.
        max_samples: The sample limit.

    Returns:
        The result of `describe`; and `max_samples`, None where the class declares that it does not matter.
    """
    # It is not inherited: a subclass may depend on the limit where its parents do not.
    is_independent = vars(type(method)).get("independent_of_limit", False)
    return {**describe(method, options), "max_samples": None if is_independent else max_samples}


def describe(one: object, options: Mapping[str, Any]) -> dict[str, Any]:
    """Describe an object by its class, its options and their source code.

    Args:
        one: The object.
        options: Its options: `class_path`, a class or a function that returns it; `init_args`, the resolved arguments
            with defaults; and `dict_kwargs`, those that its signature does not name.

    Returns:
        `class`, its path; `function`, the path of the function that returned it, if any; `hyperparameters`, values
        without a form in JSON as text; and `digests` by module of the files that define the class, its parents, the
        function, and classes and functions that the hyperparameters name. Functions that these files import are not
        included, nor are files that they read.
    """
    kind, path = type(one), options.get("class_path", "")
    hyperparameters = _as_json({**(options.get("dict_kwargs") or {}), **(options.get("init_args") or {})})
    made_by = pkgutil.resolve_name(path) if path else kind
    classes = {*inspect.getmro(kind), *_named(hyperparameters), *(() if inspect.isclass(made_by) else (made_by,))}
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        **({} if inspect.isclass(made_by) else {"function": path}),
        "hyperparameters": hyperparameters,
        "digests": source_digests(classes),
    }


def _as_json(value: Any) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return values of YAML as JSON values; numbers that are not finite, and dates, as text."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    is_plain = value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else str(value)


def source_digests(classes: Iterable[object]) -> dict[str, str]:
    """Return digests of the source code that defines classes and functions.

    A digest is of a whole file, so that it includes the functions and constants beside a class, without comments,
    docstrings and layout.

    Args:
        classes: Classes and functions; those of Python, torch and Lightning are left out.

    Returns:
        Digests by module, sorted. A module without available source code gets another one in every process.
    """
    digests = {}
    for one in classes:
        module = getattr(one, "__module__", None) or "builtins"
        if _counts(module):
            loaded = sys.modules.get(module)
            file = getattr(loaded, "__file__", None)
            name = module if file else f"{module}.{getattr(one, '__qualname__', '')}"
            digests[name] = _digest_of_module(loaded) if loaded and file else _digest_of_object(one)
    return dict(sorted(digests.items()))


def keep_sources(classes: Iterable[type]) -> None:
    """Keep the present source code of classes as the code that this process runs, even if the files change later.

    Files of other classes are read when they are first digested.

    Args:
        classes: Classes that were just imported; the files of their parents are kept, too.
    """
    for name in {parent.__module__ for one in classes for parent in inspect.getmro(one)}:
        if _counts(name):
            _source_of(sys.modules[name])


def _counts(module: str) -> bool:
    outermost = module.partition(".")[0]
    return outermost not in LIBRARIES and outermost not in sys.stdlib_module_names - {"__main__"}


def _source_of(module: ModuleType) -> bytes:
    # A module that is reloaded, as in a notebook, gets another specification.
    spec, source = _SOURCES.get(module.__name__, (None, b""))
    if not source or spec is not module.__spec__:
        source = Path(str(module.__file__)).read_bytes()
        _SOURCES[module.__name__] = module.__spec__, source
    return source


def _digest_of_module(module: ModuleType) -> str:
    source = _source_of(module)
    return _digest(source) if str(module.__file__).endswith(".py") else hashlib.sha256(source).hexdigest()


@cache
def _digest_of_object(one: object) -> str:
    try:
        return _digest(textwrap.dedent(inspect.getsource(one)).encode())  # type: ignore[arg-type]
    except (OSError, TypeError, SyntaxError):
        return uuid.uuid4().hex


@cache
def _digest(source: bytes) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]) and not isinstance(node, ast.Lambda):
            body[0] = ast.Pass()
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _named(value: object) -> Iterator[object]:
    """Return the classes, with their parents, and the functions that hyperparameters name by their import paths."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _named(part)
    elif isinstance(value, str):
        # The import paths were imported when the method was built.
        module, _, name = value.rpartition(".")
        one = getattr(sys.modules.get(module), name, None)
        if inspect.isclass(one):
            yield from inspect.getmro(one)
        elif inspect.isfunction(one):
            yield one

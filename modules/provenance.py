"""The provenance of a method: its class, its hyperparameters, and the code and values that both reach."""

from __future__ import annotations

import hashlib
import inspect
import math
import os
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.modules.identity.origins import SUITE, find_module
from headstart.modules.identity.reached_code import ReachedCode
from headstart.modules.identity.source_code import DOTTED
from headstart.modules.identity.values import ValueDigests
from headstart.output.errors import UserError
from headstart.output.files import digest_file

if TYPE_CHECKING:
    from headstart.modules.method import Method

LIBRARIES = {"torch", "torchvision", "lightning", "lightning_fabric", "lightning_utilities", "pytorch_lightning"}


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
    """Describe an object by its class, its options and all code that these reach.

    Args:
        one: The object, or its class where its attributes do not count.
        options: Its options. `class_path` is a class or a function that returns it; `init_args` are the resolved
            arguments with defaults; `dict_kwargs` are those that its signature does not name.

    Returns:
        `class`, its path; `function`, the path of the function that returned it, if any; and `hyperparameters`, where
        values without a form in JSON are text. `digests` by module: those of the user's own modules that they reach,
        and one of those of the suite. `packages`: versions of the installed packages that these import. Where there are
        any, also `variables` of the environment, `files` by their digests, and a digest of the `values` in the user's
        own modules and in the object.

    Raises:
        UserError: A module of the user's own runs other code than its file has, or a declared file cannot be read.
    """
    kind, path = one if isinstance(one, type) else type(one), options.get("class_path", "")
    hyperparameters = _as_json({**(options.get("dict_kwargs") or {}), **(options.get("init_args") or {})})
    made_by = pkgutil.resolve_name(path) if path else kind
    texts = sorted(set(_texts(hyperparameters)))
    # `module:name` is a form of `pkgutil.resolve_name`, and a module alone may be imported by its name.
    named = (text.replace(":", ".") for text in (path, *texts))
    paths = [text for text in named if DOTTED.fullmatch(text)]

    code = ReachedCode()
    for each in (*(parent.__module__ for parent in inspect.getmro(kind)), *paths):
        code.add(each)
    code.add_patches()
    code.texts |= set(texts)
    values = _digest_values(one, code)
    for declaring in (one, *filter(None, map(_resolve, paths))):
        code.variables |= set(_declared(declaring, "reads_variables"))
        for file in _declared(declaring, "reads_files"):
            code.declare(file, _digest_declared(declaring, file))

    beside = {
        "variables": {name: _digest_variable(name) for name in sorted(code.variables)},
        "files": code.files,
        "values": values,
    }
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        **({} if inspect.isclass(made_by) else {"function": path}),
        "hyperparameters": hyperparameters,
        "digests": code.digests,
        "packages": dict(sorted(code.packages.items())),
        **{name: value for name, value in beside.items() if value},
    }


def source_digests(objects: Iterable[object]) -> dict[str, str]:
    """Return digests of the source code that defines classes and functions, and of all code that it reaches.

    A digest is of a whole file, so it includes the functions and constants beside a class. It leaves out comments,
    docstrings, layout and messages.

    Args:
        objects: Classes and functions.

    Returns:
        Digests by module of the user's own modules, and one of those of the suite, sorted; none of installed packages.

    Raises:
        UserError: A module of the user's own runs other code than its file has.
    """
    code, values = ReachedCode(), ValueDigests(_is_own, _has_file)
    without_file = {}
    for one in objects:
        module = getattr(one, "__module__", None) or "builtins"
        code.add(module)
        if _is_own(module) and not _has_file(module):
            without_file[f"{module}.{getattr(one, '__qualname__', '')}"] = values.digest(one)
    return dict(sorted({**code.digests, **without_file}.items()))


def own_modules(kinds: Iterable[type]) -> list[str]:
    """Return the names of the user's own modules that classes of the user's own reach, sorted.

    Args:
        kinds: The classes; those of the suite and of installed packages do not count.
    """
    code = ReachedCode()
    for kind in kinds:
        if _is_own(kind.__module__):
            code.add(kind.__module__)
    return sorted(code.own)


def values_outside(kinds: Iterable[type], modules: Iterable[str]) -> str:
    """Return a digest of the values in classes of the user's own, and in modules.

    Args:
        kinds: The classes; those of the suite and of installed packages do not count.
        modules: Names of the modules; those that are not loaded do not count.

    Returns:
        The digest; empty where there are no such classes.
    """
    own = sorted({kind for kind in kinds if _is_own(kind.__module__)}, key=lambda kind: kind.__qualname__)
    if not own:
        return ""
    values = ValueDigests(_is_own, _has_file)
    return values.digest([*own, *(values.module(sys.modules[name]) for name in modules if name in sys.modules)])


def describe_own_class(kind: type, options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Describe a class that inherits from one of the suite by its code and by the options that it adds.

    Args:
        kind: The class.
        options: Its options, as for `describe`.

    Returns:
        The description; None of a class of the suite.
    """
    suites = [parent for parent in inspect.getmro(kind) if parent.__module__.partition(".")[0] == SUITE]
    if kind in suites:
        return None
    known = {name for parent in suites for name in inspect.signature(parent).parameters}
    added = {name: value for name, value in (options.get("init_args") or {}).items() if name not in known}
    return describe(kind, {**options, "init_args": added})


def is_foreign(one: object, options: Mapping[str, Any]) -> bool:
    """Whether an object's class, or code that its options name, is neither the suite's nor Lightning's nor torch's.

    Args:
        one: The object.
        options: Its options, as for `describe`.
    """
    kinds = [parent.__module__ for parent in inspect.getmro(type(one))]
    named = [text for text in _texts(_as_json(dict(options))) if "." in text and DOTTED.fullmatch(text)]
    outermost = {each.partition(".")[0] for each in (*kinds, *named)} - {SUITE, *LIBRARIES} - sys.stdlib_module_names
    return any(name == "__main__" or find_module(name) is not None for name in outermost)


def _as_json(value: Any) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return values of YAML as JSON values; numbers that are not finite, and dates, as text."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    is_plain = value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else str(value)


def _texts(value: object) -> Iterator[str]:
    """Return all texts in JSON values, and keys that are no names of options."""
    if isinstance(value, Mapping):
        value = [*(key for key in value if not str(key).isidentifier()), *value.values()]
    if isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, str):
        yield value


def _digest_values(one: object, code: ReachedCode) -> str:
    """Return a digest of the values in an object and in the user's own modules that it reaches; empty without these.

    Modules of the values, such as that of a function that a decorator returned, and files are added to the code.
    """
    values, digested = ValueDigests(_is_own, _has_file), {}
    is_own = any(_is_own(parent.__module__) for parent in inspect.getmro(one if isinstance(one, type) else type(one)))
    if not code.own and not is_own:
        return ""

    digested[""] = values.digest(one)
    while True:
        for name in sorted(filter(_is_reachable, values.modules)):
            code.add(name)
        code.add_files(values.paths)
        pending = [name for name in code.own if name in sys.modules and name not in digested]
        if not pending:
            break
        digested |= {name: values.module(sys.modules[name]) for name in pending}
    return values.digest(digested)


def _resolve(path: str) -> object:
    """Return what a path names if its module is imported; None otherwise."""
    module, _, name = path.rpartition(".")
    return getattr(sys.modules.get(module), name, None)


def _declared(one: object, attribute: str) -> list[str]:
    declared = getattr(one, attribute, ())
    return [declared] if isinstance(declared, str) else list(map(str, declared))


def _digest_variable(name: str) -> str | None:
    """Return the SHA-256 of an environment variable, which may be secret; None if it is not set."""
    value = os.environ.get(name)
    return None if value is None else hashlib.sha256(os.fsencode(value)).hexdigest()


def _digest_declared(one: object, file: str) -> str:
    try:
        return digest_file(Path(file))
    except UserError as error:
        kind = one if inspect.isclass(one) else type(one)
        raise UserError(f"{kind.__name__}.reads_files: {error}") from error


@cache
def _is_reachable(module: str) -> bool:
    origin = find_module(module)
    return origin is not None and not origin.is_suite


@cache
def _is_own(module: str) -> bool:
    origin = find_module(module)
    # Without a file and a folder it is built in, or that of a notebook.
    return origin.is_own if origin else module == "__main__" or module.partition(".")[0] not in sys.stdlib_module_names


@cache
def _has_file(module: str) -> bool:
    origin = find_module(module)
    return origin is not None and origin.file is not None

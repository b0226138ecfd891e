"""The description of a method or another object in a key: its class, hyperparameters, files and code."""

import hashlib
import inspect
import math
import os
import pkgutil
import re
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headstart.modules.running_code import (
    SUITE,
    doubts,
    installed_packages,
    is_user_code,
    is_user_path,
    prompt_doubts,
    suite_digest,
    suite_doubts,
    user_modules,
)
from headstart.output.errors import prefix_errors
from headstart.output.files import digest_file

# Packages that can affect counts of correct predictions, by the names of their modules; not all need be installed.
PACKAGES = {
    "PIL": "pillow",
    "lightning": "lightning",
    "numpy": "numpy",
    "open_clip": "open_clip_torch",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "tabicl": "tabicl",
    "timm": "timm",
    "torch": "torch",
    "torchvision": "torchvision",
}
# Beginning of the modules of the suite's methods, none of which depends on the sample limit.
SHIPPED = "headstart.modules.methods."
# Name of an entry that stands for the digests of code that cannot be read.
UNKNOWN = "unknown code"
# The path of a module, or of an object in one.
DOTTED = re.compile(r"[^\W\d]\w*([.:][^\W\d]\w*)*")


def describe(obj: object, options: Mapping[str, Any]) -> dict[str, Any]:
    """Describe an object by its class, its options, and what they name.

    Args:
        obj: The object, or its class.
        options: Its options. `class_path` is a class or a function that returns it; `init_args` are the resolved
            arguments with defaults; `dict_kwargs` are those that its signature does not name.

    Returns:
        `class`, its path; `function`, the path of the function that returned it, if any; `hyperparameters`, where
        values that JSON cannot represent are strings. Where there are any, also `variables` of the environment and
        `files` by their digests, and `installed`, the digest of all installed packages if it may depend on any of them.

    Raises:
        UserError: A declared file cannot be read.
    """
    kind, path = _kind(obj), options.get("class_path", "")
    made_by = pkgutil.resolve_name(path) if path else kind
    hyperparameters = _hyperparameters(options)
    texts = sorted(set(_texts(hyperparameters)))

    files = {text: digest_file(Path(text).expanduser()) for text in texts if _is_file(text)}
    variables = dict[str, str | None]()
    for declaring in (obj, *filter(None, map(_resolve, (path, *texts)))):
        with prefix_errors(f"{_kind(declaring).__name__}.reads_files"):
            files |= {file: digest_file(Path(file).expanduser()) for file in _declared(declaring, "reads_files")}
        variables |= {name: _digest_variable(name) for name in _declared(declaring, "reads_variables")}

    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        **({} if inspect.isclass(made_by) else {"function": path}),
        "hyperparameters": hyperparameters,
        # The imports of code outside of `PACKAGES` are not known.
        **({"installed": installed_packages()} if is_foreign(obj, options) else {}),
        **({"variables": variables} if variables else {}),
        **({"files": files} if files else {}),
    }


def describe_method(method: object, options: Mapping[str, Any], max_samples: int) -> dict[str, Any]:
    """Describe a method by the result of `describe`, and its sample limit.

    Args:
        method: The method, or a class of LightningModules.
        options: Its options, as for `describe`.
        max_samples: The sample limit, which is None in the result if the class declares that it is independent of it.
    """
    kind = _kind(method)
    # `independent_of_limit` is not inherited: a subclass may depend on the limit although its parents do not.
    is_independent = vars(kind).get("independent_of_limit", kind.__module__.startswith(SHIPPED))
    return {**describe(method, options), "max_samples": None if is_independent else max_samples}


def code_of(obj: object, options: Mapping[str, Any]) -> dict[str, str]:
    """Return digests of the code that can affect an object: of the suite and, if it has user code, of all user modules.

    Args:
        obj: The object, or its class.
        options: Its options, as for `describe`.
    """
    return {SUITE: suite_digest(), **(user_modules() if has_user_code(obj, options) else {})}


def has_user_code(obj: object, options: Mapping[str, Any]) -> bool:
    """Return whether the class of an object, or something that its options name, is the user's code.

    Args:
        obj: The object, or its class.
        options: Its options, as for `describe`.
    """
    texts = (options.get("class_path", ""), *_texts(_hyperparameters(options)))
    return any(map(is_user_code, inspect.getmro(_kind(obj)))) or any(map(is_user_path, filter(DOTTED.fullmatch, texts)))


def doubts_about(obj: object, options: Mapping[str, Any]) -> list[str]:
    """Return why other code may have run than an object's description has, which then identifies no result.

    Args:
        obj: The object, or its class.
        options: Its options, as for `describe`.
    """
    texts = (options.get("class_path", ""), *_texts(_hyperparameters(options)))
    named = [value for value in map(_resolve, texts) if callable(value)]
    if not has_user_code(obj, options):
        return suite_doubts()
    return [*suite_doubts(), *doubts([*inspect.getmro(_kind(obj)), *named]), *prompt_doubts()]


def user_digests(objects: Iterable[object]) -> dict[str, str]:
    """Return the digests of all user modules if any of some classes and functions is user code; nothing otherwise.

    If the code that runs may differ from the digests, they have a random entry, which no other call returns.

    Args:
        objects: Classes and functions.
    """
    users = [one for one in objects if is_user_code(one)]
    if not users:
        return {}
    return {**user_modules(), **({UNKNOWN: secrets.token_hex()} if doubts(users) else {})}


def describe_subclass(kind: type, options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Describe a class that inherits from one of the suite by its code and by the options that it adds.

    Args:
        kind: The class.
        options: Its options, as for `describe`.

    Returns:
        The description; None for a class of the suite.
    """
    suite_classes = [parent for parent in inspect.getmro(kind) if parent.__module__.partition(".")[0] == SUITE]
    if kind in suite_classes:
        return None
    parameters = {name for parent in suite_classes for name in inspect.signature(parent).parameters}
    added = {name: value for name, value in (options.get("init_args") or {}).items() if name not in parameters}
    options = {**options, "init_args": added}
    return {**describe(kind, options), "code": code_of(kind, options)}


def is_foreign(obj: object, options: Mapping[str, Any]) -> bool:
    """Return whether the class of an object, or what its options name, is neither the suite's nor of one of `PACKAGES`.

    Args:
        obj: The object, or its class.
        options: Its options, as for `describe`.
    """
    paths = (_kind(obj).__module__, options.get("class_path", ""), *_texts(_hyperparameters(options)))
    return has_user_code(obj, options) or any(map(_is_of_other_package, paths))


def _kind(obj: object) -> type:
    return obj if isinstance(obj, type) else type(obj)


def _hyperparameters(options: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    return _as_json({**(options.get("dict_kwargs") or {}), **(options.get("init_args") or {})})


def _as_json(value: Any) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return values of YAML as JSON values; numbers that are not finite, and dates, as text."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    is_plain = value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else str(value)


def _texts(value: object) -> Iterator[str]:
    """Yield all strings in JSON values, and those keys that cannot be names of options."""
    if isinstance(value, Mapping):
        value = [*(key for key in value if not key.isidentifier()), *value.values()]
    if isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, str):
        yield value


@cache
def versions() -> dict[str, str]:
    """Return the versions of those `PACKAGES` that are installed, by name."""
    installed = {}
    for package in sorted(PACKAGES.values()):
        with suppress(metadata.PackageNotFoundError):
            installed[package] = metadata.version(package)
    return installed


def _is_of_other_package(path: str) -> bool:
    """Return whether a text is a path in a package other than the suite, `PACKAGES` and the standard library."""
    name, dot, _ = path.replace(":", ".").partition(".")
    is_known = name in {SUITE, *PACKAGES} or name in sys.stdlib_module_names
    is_path = bool(dot) and not is_known and DOTTED.fullmatch(path) is not None
    return is_path and (name in sys.modules or find_spec(name) is not None)


def _resolve(path: str) -> object:
    """Return the object at a path if its module is imported; None otherwise."""
    module, _, name = path.replace(":", ".").rpartition(".")
    return getattr(sys.modules.get(module), name, None)


def _is_file(text: str) -> bool:
    # The functions of Path raise errors for impossible names.
    return text.isprintable() and os.path.isfile(os.path.expanduser(text))  # noqa: PTH111, PTH113


def _declared(obj: object, attribute: str) -> list[str]:
    declared = getattr(obj, attribute, ())
    return [declared] if isinstance(declared, str) else list(map(str, declared))


def _digest_variable(name: str) -> str | None:
    """Return the SHA-256 of an environment variable, which may be secret; None if it is not set."""
    value = os.environ.get(name)
    return None if value is None else hashlib.sha256(os.fsencode(value)).hexdigest()

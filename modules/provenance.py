"""What a key has of a method or another object: its class, hyperparameters, and the files and code that it reaches."""

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
    is_own,
    names_own,
    own_modules,
    prompt_doubts,
    suite_digest,
    suite_doubts,
)
from headstart.output.errors import prefix_errors
from headstart.output.files import digest_file

# Installed packages that can touch a count, by the names of their modules; those that are not installed do not count.
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
# Modules of the suite's methods, none of which depends on the sample limit.
SHIPPED = "headstart.modules.methods."
# In place of digests of code that is not known.
UNKNOWN = "unknown code"
# The path of a module, or of something in one.
DOTTED = re.compile(r"[^\W\d]\w*([.:][^\W\d]\w*)*")


def describe(one: object, options: Mapping[str, Any]) -> dict[str, Any]:
    """Describe an object by its class, its options, and what they name.

    Args:
        one: The object, or its class.
        options: Its options. `class_path` is a class or a function that returns it; `init_args` are the resolved
            arguments with defaults; `dict_kwargs` are those that its signature does not name.

    Returns:
        `class`, its path; `function`, the path of the function that returned it, if any; `hyperparameters`, where
        values without a form in JSON are text. Where there are any, also `variables` of the environment and `files`
        by their digests, and `installed`, the digest of all installed packages if it may depend on any of them.

    Raises:
        UserError: A declared file cannot be read.
    """
    kind, path = _kind(one), options.get("class_path", "")
    made_by = pkgutil.resolve_name(path) if path else kind
    hyperparameters = _hyperparameters(options)
    texts = sorted(set(_texts(hyperparameters)))

    files = {text: digest_file(Path(text).expanduser()) for text in texts if _is_file(text)}
    variables = dict[str, str | None]()
    for declaring in (one, *filter(None, map(_resolve, (path, *texts)))):
        with prefix_errors(f"{_kind(declaring).__name__}.reads_files"):
            files |= {file: digest_file(Path(file).expanduser()) for file in _declared(declaring, "reads_files")}
        variables |= {name: _digest_variable(name) for name in _declared(declaring, "reads_variables")}

    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        **({} if inspect.isclass(made_by) else {"function": path}),
        "hyperparameters": hyperparameters,
        # What such code imports is not known.
        **({"installed": installed_packages()} if is_foreign(one, options) else {}),
        **({"variables": variables} if variables else {}),
        **({"files": files} if files else {}),
    }


def describe_method(method: object, options: Mapping[str, Any], max_samples: int) -> dict[str, Any]:
    """Describe a method by the result of `describe`, and its sample limit.

    Args:
        method: The method, or a class of LightningModules.
        options: Its options, as for `describe`.
        max_samples: The sample limit, which is None in the result where the class declares that it does not matter.
    """
    kind = _kind(method)
    # It is not inherited: a subclass may depend on the limit where its parents do not.
    is_independent = vars(kind).get("independent_of_limit", kind.__module__.startswith(SHIPPED))
    return {**describe(method, options), "max_samples": None if is_independent else max_samples}


def code_of(one: object, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the code that can touch an object: a digest of the suite, and all own modules where it is the user's own.

    Args:
        one: The object, or its class.
        options: Its options, as for `describe`.
    """
    return {SUITE: suite_digest(), **(own_modules() if is_users(one, options) else {})}


def is_users(one: object, options: Mapping[str, Any]) -> bool:
    """Return whether the class of an object, or something that its options name, is the user's own.

    Args:
        one: The object, or its class.
        options: Its options, as for `describe`.
    """
    texts = (options.get("class_path", ""), *_texts(_hyperparameters(options)))
    return any(map(is_own, inspect.getmro(_kind(one)))) or any(map(names_own, filter(DOTTED.fullmatch, texts)))


def doubts_about(one: object, options: Mapping[str, Any]) -> list[str]:
    """Return why the code that made an object may be other code than its description has, so that it names no result.

    Args:
        one: The object, or its class.
        options: Its options, as for `describe`.
    """
    texts = (options.get("class_path", ""), *_texts(_hyperparameters(options)))
    named = [value for value in map(_resolve, texts) if callable(value)]
    if not is_users(one, options):
        return suite_doubts()
    return [*suite_doubts(), *doubts([*inspect.getmro(_kind(one)), *named]), *prompt_doubts()]


def own_digests(objects: Iterable[object]) -> dict[str, str]:
    """Return the digests of all own modules where one of some classes and functions is own; else nothing.

    Where other code may run than the digests are of, they have an entry that no other call returns.

    Args:
        objects: Classes and functions.
    """
    users = [one for one in objects if is_own(one)]
    if not users:
        return {}
    return {**own_modules(), **({UNKNOWN: secrets.token_hex()} if doubts(users) else {})}


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
    parameters = {name for parent in suites for name in inspect.signature(parent).parameters}
    added = {name: value for name, value in (options.get("init_args") or {}).items() if name not in parameters}
    options = {**options, "init_args": added}
    return {**describe(kind, options), "code": code_of(kind, options)}


def is_foreign(one: object, options: Mapping[str, Any]) -> bool:
    """Return whether the class of an object, or what its options name, is neither the suite's nor of one of `PACKAGES`.

    Args:
        one: The object, or its class.
        options: Its options, as for `describe`.
    """
    paths = (_kind(one).__module__, options.get("class_path", ""), *_texts(_hyperparameters(options)))
    return is_users(one, options) or any(map(_is_of_other_package, paths))


def _kind(one: object) -> type:
    return one if isinstance(one, type) else type(one)


def _hyperparameters(options: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    return _as_json({**(options.get("dict_kwargs") or {}), **(options.get("init_args") or {})})


def _as_json(value: Any) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return values of YAML as JSON values; numbers that are not finite, and dates, as text."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    is_plain = value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else str(value)


def _texts(value: object) -> Iterator[str]:
    """Yield all texts in JSON values, and keys that are no names of options."""
    if isinstance(value, Mapping):
        value = [*(key for key in value if not key.isidentifier()), *value.values()]
    if isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, str):
        yield value


@cache
def versions() -> dict[str, str]:
    """Return the versions of the installed packages that can touch a count, by name."""
    installed = {}
    for package in sorted(PACKAGES.values()):
        with suppress(metadata.PackageNotFoundError):
            installed[package] = metadata.version(package)
    return installed


def _is_of_other_package(path: str) -> bool:
    """Return whether a text is the path of something in a package whose version is not among those of `PACKAGES`."""
    name, dot, _ = path.replace(":", ".").partition(".")
    is_known = name in {SUITE, *PACKAGES} or name in sys.stdlib_module_names
    is_path = bool(dot) and not is_known and DOTTED.fullmatch(path) is not None
    return is_path and (name in sys.modules or find_spec(name) is not None)


def _resolve(path: str) -> object:
    """Return what a path names if its module is imported; None otherwise."""
    module, _, name = path.replace(":", ".").rpartition(".")
    return getattr(sys.modules.get(module), name, None)


def _is_file(text: str) -> bool:
    # The functions of Path raise errors for impossible names.
    return text.isprintable() and os.path.isfile(os.path.expanduser(text))  # noqa: PTH111, PTH113


def _declared(one: object, attribute: str) -> list[str]:
    declared = getattr(one, attribute, ())
    return [declared] if isinstance(declared, str) else list(map(str, declared))


def _digest_variable(name: str) -> str | None:
    """Return the SHA-256 of an environment variable, which may be secret; None if it is not set."""
    value = os.environ.get(name)
    return None if value is None else hashlib.sha256(os.fsencode(value)).hexdigest()

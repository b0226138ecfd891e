"""Code of the user that builds a network: whether it may be imported, and its files."""

import re
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

from headstart.output.errors import UserError, reason_of


def split_path(path: object, allowed_modules: Sequence[str] | None, term: str) -> tuple[str, str]:
    """Split a function's dotted path into module and name, if the module is allowed; nothing is imported.

    Args:
        path: The path, `package.module.function`.
        allowed_modules: Modules and packages from which the function may be imported; None for any.
        term: Name of the path in messages.

    Returns:
        The module's path and the function's name.

    Raises:
        UserError: The path has another form, or its module is not allowed.
    """
    if not isinstance(path, str) or not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", path):
        raise UserError(f"{term}: {path!r}, but a custom source needs a dotted path, package.module.function")
    module, _, function = path.rpartition(".")
    if allowed_modules is not None and not any(_is_within(module, allowed) for allowed in allowed_modules):
        raise UserError(
            f"{term}: custom code of the module {module!r} is not allowed; if you trust it, name it "
            "or its package in extraction.allow_modules"
        )
    return module, function


def import_code(path: object, allowed_modules: Sequence[str] | None, term: str) -> object:
    """Import the function that builds a network.

    Args:
        path: As for `split_path`.
        allowed_modules: As for `split_path`.
        term: Name of the path in messages.

    Raises:
        UserError: As `split_path`; or the module cannot be imported, or has no such function.
    """
    module, function = split_path(path, allowed_modules, term)
    try:
        return getattr(import_module(module), function)
    except Exception as error:  # code of the user's own
        raise UserError(f"{term}: {path} cannot be imported: {type(error).__name__}: {reason_of(error)}") from error


def find_code(path: object, allowed_modules: Sequence[str] | None, term: str) -> dict[str, Path]:
    """Find the files with the code of a network: all of the allowed package, or the one allowed module.

    Args:
        path: As for `split_path`.
        allowed_modules: As for `split_path`; where all are allowed, the outermost package is searched.
        term: Name of the path in messages.

    Returns:
        Files by their names relative to the package, sorted; the module itself is not imported. Where a package and a
        part of it are allowed, the whole package is searched.

    Raises:
        UserError: As `split_path`, or there is no such module.
    """
    module, _ = split_path(path, allowed_modules, term)
    spec = _find_spec(module, term)
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise UserError(f"{term}: there is no Python file of the module {module!r}")

    around = [module.partition(".")[0]] if allowed_modules is None else allowed_modules
    package = _find_spec(min((allowed for allowed in around if _is_within(module, allowed)), key=len), term)
    file = Path(spec.origin)
    files: dict[str, Path] = {}
    for folder in map(Path, (package and package.submodule_search_locations) or ()):
        files.update((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*.py") if path.is_file())
    if file not in files.values():
        files[file.name] = file
    return dict(sorted(files.items()))


def _find_spec(module: str, term: str) -> ModuleSpec | None:
    try:
        return find_spec(module)
    except Exception as error:  # a package's own code runs, and may raise anything
        raise UserError(f"{term}: the module {module!r} cannot be found: {reason_of(error)}") from error


def _is_within(module: str, allowed: str) -> bool:
    return module == allowed or module.startswith(f"{allowed}.")

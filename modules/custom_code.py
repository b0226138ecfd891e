"""Code of the user that builds a network: it is imported where it is allowed, and its files are found."""

import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from headstart.output.errors import UserError, reason_of


def import_code(path: object, allowed_modules: Sequence[str] | None, term: str) -> object:
    """Import the function that builds a network.

    Args:
        path: Its dotted path, `package.module.function`.
        allowed_modules: Modules and packages from which the function may be imported; None for any.
        term: Name of the path in messages.

    Raises:
        UserError: The path has another form, its module is not allowed or cannot be imported, or it has no such
            function.
    """
    if not isinstance(path, str) or not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", path):
        raise UserError(f"{term}: {path!r}, but a custom source needs a dotted path, package.module.function")
    module, _, function = path.rpartition(".")
    allowed = (module,) if allowed_modules is None else allowed_modules
    if not any(f"{module}.".startswith(f"{each}.") for each in allowed):
        raise UserError(
            f"{term}: custom code of the module {module!r} is not allowed; if you trust it, name it "
            "or its package in extraction.allow_modules"
        )
    try:
        return getattr(import_module(module), function)
    except Exception as error:  # code of the user's own
        raise UserError(f"{term}: {path} cannot be imported: {type(error).__name__}: {reason_of(error)}") from error


def files_of_code(path: str) -> dict[str, Path]:
    """Return the Python files of the outermost package or module of imported code, by their sorted relative names.

    Args:
        path: As for `import_code`.
    """
    package = sys.modules[path.partition(".")[0]]
    files = {
        file.relative_to(folder).as_posix(): file
        for folder in map(Path, getattr(package, "__path__", ()))
        for file in folder.rglob("*.py")
        if file.is_file()
    }
    if not files and package.__file__ is not None:
        files = {Path(package.__file__).name: Path(package.__file__)}
    return dict(sorted(files.items()))
